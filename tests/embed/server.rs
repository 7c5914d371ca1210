//! A host program: a service whose answers come from a model script. Each worker thread has a session of its own, loads
//! the script once, and calls its function for each request; a request has limits, and one that fails hurts no other.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tscript::{Session, Tensor};

/// The model, which a data scientist wrote and can change without a compiler.
const MODEL: &str = r#"
import "nn" as nn;

const LABELS = ["low", "high"];

manual_seed(7);
export const MODEL = nn::sequential([nn::linear(3, 16), nn::tanh(), nn::linear(16, 2)]);
global::MODEL.eval();

fn answer(features) {
    if features.len() != 3 {
        throw `a request has 3 numbers, not ${features.len()}`;
    }
    let scores = no_grad(|| global::MODEL.forward(tensor(features, #{dtype: "f32"})).softmax(0));
    let best = scores.argmax().item();
    #{label: global::LABELS[best], scores: scores}
}
"#;

struct Request {
    features: Vec<f64>,
    answer: Sender<Result<Answer, String>>,
}

#[derive(Debug, PartialEq)]
struct Answer {
    label: String,
    scores: Vec<f32>,
}

/// A session with the model in it.
fn worker() -> Result<Session, tscript::Error> {
    let mut session = Session::builder()
        .time_limit(Duration::from_secs(5))
        .memory_limit(1 << 30)
        .output(|line| eprintln!("model: {line}"))
        .build()?;
    session.run_str("model.rhai", MODEL)?;
    Ok(session)
}

fn respond(session: &mut Session, features: Vec<f64>) -> Result<Answer, tscript::Error> {
    let mut found: std::collections::HashMap<String, tscript::Value> = session.call("answer", (features,))?;
    let label = match found.remove("label") {
        Some(tscript::Value::Str(label)) => label,
        _ => String::new(),
    };
    let scores = match found.remove("scores") {
        Some(tscript::Value::Tensor(scores)) => Tensor::to_vec(&scores)?,
        _ => Vec::new(),
    };
    Ok(Answer { label, scores })
}

/// Answers requests on a thread until nobody sends any more.
fn serve(requests: &Mutex<Receiver<Request>>) -> Result<usize, tscript::Error> {
    let mut session = worker()?;
    let mut served = 0;
    loop {
        let next = requests.lock().map(|queue| queue.recv());
        let Ok(Ok(Request { features, answer })) = next else { return Ok(served) };
        let found = respond(&mut session, features).map_err(|error| error.message().to_string());
        served += 1;
        // Whoever asked may have gone.
        let _ = answer.send(found);
    }
}

#[test]
fn requests_are_answered_by_several_threads() -> Result<(), Box<dyn std::error::Error>> {
    let (send, queue) = channel();
    let queue = Arc::new(Mutex::new(queue));
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            std::thread::spawn(move || serve(&queue))
        })
        .collect();
    let ask = |features: Vec<f64>| {
        let (answer, receive) = channel();
        send.send(Request { features, answer }).map(|()| receive)
    };
    let waiting: Result<Vec<_>, _> = (0..60).map(|i| ask(vec![i as f64, 1.0, -0.5])).collect();
    let answers: Vec<Answer> = waiting?
        .into_iter()
        .map(|answer| answer.recv()?.map_err(Into::into))
        .collect::<Result<_, Box<dyn std::error::Error>>>()?;
    let wrong = ask(vec![1.0])?.recv()?;
    let again = ask(vec![0.0, 1.0, -0.5])?.recv()?;

    assert!(answers.iter().all(|answer| (answer.scores.iter().sum::<f32>() - 1.0).abs() < 1e-5), "{answers:?}");
    assert!(answers.iter().all(|answer| ["low", "high"].contains(&answer.label.as_str())));
    assert_eq!(wrong, Err("a request has 3 numbers, not 1".to_string()));
    assert_eq!(again.as_ref(), Ok(&answers[0]), "whichever thread answers: the same model");
    drop(send);
    let mut served = 0;
    for worker in workers {
        served += worker.join().map_err(|_| "a worker panicked")??;
    }
    assert_eq!(served, 62);
    Ok(())
}
