//! What waits for a device and what does not: operations are queued, and only the points that read a value wait.

use super::scripts::{builder, run, with_gpus};

/// What a script says of a GPU after each of some statements, before which the GPU is made busy for so many
/// milliseconds: whether it had come to the end of what was queued before the statement.
fn ended(busy: u32, statements: &[&str]) -> Vec<bool> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.npy").display().to_string();
    let mut text = format!(
        "import \"nn\" as nn; import \"optim\" as optim; import \"metrics\" as metrics; import \"amp\" as amp;
        let x = arange(4, #{{device: \"cuda\", dtype: \"f32\"}});
        let m = x > 1; let i = tensor(1, #{{device: \"cuda\"}}); let labels = tensor([0, 2], #{{device: \"cuda\"}});
        let model = nn::linear(4, 2).to(\"cuda\"); let opt = optim::adam(model.parameters(), #{{lr: 0.1}});
        let scores = rand([2, 3], #{{device: \"cuda\"}});
        let average = optim::averaged_model(model, #{{multi_avg_fn: optim::get_ema_multi_avg_fn(0.9)}});
        let factored = optim::adafactor(model.parameters()); let orthogonal = optim::muon([model.weight]);
        let accuracy = metrics::accuracy(\"multiclass\", #{{num_classes: 3, top_k: 2}});
        let curve = metrics::auroc(\"multiclass\", #{{num_classes: 3}}); let error = metrics::mean_squared_error();
        let scaler = amp::grad_scaler();
        let normed = nn::spectral_norm(nn::linear(4, 2)).to(\"cuda\");
        let mark = event(); let e = event(); let s = stream(); let file = {file:?};
\n"
    );
    for statement in statements {
        text += "cuda::synchronize();\n";
        text += &format!("cuda::sleep({busy}); mark.record();\n{statement};\nprint(\"ended\", mark.query());\n");
    }
    // Not in virtual time: a question lets it go on.
    let Some(base) = with_gpus(builder(), 1) else { return Vec::new() };
    let ran = run(base.all_files(), "waits", &text);
    if let Err(error) = &ran.result {
        panic!("{}\n{text}", error.diag().message);
    }
    ran.printed.lines().filter_map(|line| line.strip_prefix("ended ")).map(|word| word == "true").collect()
}

#[test]
fn what_reads_a_value_waits() {
    let points = [
        "print(x + 1)",
        "let text = `${x + 1}`",
        "let text = \"x \" + (x + 1)",
        "let text = to_json(#{x: x.sum()})",
        "x.sum().item()",
        "(x + 1).to_array()",
        "(x + 1).tolist()",
        "(x + 1).cpu()",
        "(x + 1).to(\"cpu\")",
        "zeros([4]).copy_(x).sum().item()",
        "cuda::synchronize()",
        "current_stream().synchronize()",
        "e.record(); e.synchronize()",
        "save(file, x + 1)",
        "if x.sum() > 1 { }",
        "while x.sum() < 0 { }",
        "x[i + 1]",
        "x[i + 1] = 2.0",
        "try { x.add_(1); } catch (e) { }",
        "nonzero(x + 1)",
        "x[x > 1]",
        "x.masked_select(x > 1)",
        "(x + 1).unique()",
        "one_hot(labels + 1)",
        "equal(x + 1, x)",
        "allclose(x + 1, x)",
    ];
    for (point, ended) in points.iter().zip(ended(60, &points)) {
        assert!(ended, "{point} does not wait");
    }
}

#[test]
fn what_reads_no_value_does_not_wait() {
    let statements = [
        "x + 1; x.sum(); x @ x; x.sort(); x.cumsum(0)",
        "x.shape; x.dtype; x.device; x.numel; x.is_contiguous()",
        "x[0]; x[1..3]; x[(), ..]; x.view([2, 2]).T",
        "x[labels]; x[labels] = 1.0; x[0] = 5; x += 1; x.fill_(2)",
        "x[m] = 1.0; x.masked_fill_(m, 0); x.where(m, 0)",
        "rand([4], #{device: \"cuda\"}); tensor([1.0, 2.0]).cuda(); x.clone(); x.to(\"f64\")",
        "one_hot(labels, 4); x.topk(2)",
        "let loss = cross_entropy(model.forward(x.view([1, 4])), tensor([1]).cuda()); opt.zero_grad(); loss.backward(); opt.step()",
        "model(x.view([1, 4])).sum().backward(); factored.step(); orthogonal.step()",
        "let loss = autocast(\"f16\") { cross_entropy(model.forward(x.view([1, 4])), tensor([1]).cuda()) }; \
         scaler.scale(loss).backward(); scaler.unscale_(opt); scaler.step(opt); scaler.step(factored); scaler.update()",
        "average.update_parameters(model)",
        "accuracy.update(scores, labels); accuracy(scores, labels)",
        "curve.update(scores, labels); error.update(x, x + 1)",
        "accuracy.update(scores, labels); let v = accuracy.compute()",
        "normed(x.view([1, 4])).sum().backward()",
        "e.record(); s.wait_event(e); e.query(); s.query(); s.record_event()",
        "with_stream(s) { x.sum() }",
        "try { let n = 1 + 1; } catch (e) { }",
        "let k = 3; if k > 2 { x * k; }",
    ];
    for statement in statements {
        // Bound: a machine with much else to do may need longer than the first of these for the statement alone.
        let waits = [200, 2000, 10000].iter().all(|&busy| ended(busy, &[statement]).first() == Some(&true));
        assert!(!waits, "{statement} waits");
    }
}
