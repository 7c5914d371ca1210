-- Neovim as a client of `tscript lsp`, with what `install.sh` has installed. A script is opened; what the server says of it
-- arrives, and the parser of tree-sitter colors it.
--
--     nvim --headless -u NORC -S test.lua

local function fail(text)
  io.stderr:write("failed: " .. text .. "\n")
  vim.cmd("cquit")
end

local function expect(what, holds, ...)
  if not holds then
    fail(what .. ": " .. vim.inspect({ ... }))
  end
  io.stdout:write("ok - " .. what .. "\n")
end

local function try(body)
  local good, why = xpcall(body, debug.traceback)
  if not good then
    fail(why)
  end
end

--- Waits until a function gives a value that counts.
local function await(what, get)
  local found
  local good = vim.wait(20000, function()
    found = get()
    return found ~= nil and found ~= false
  end, 20)
  expect(what, good)
  return found
end

local SCRIPT = {
  'import "nn" as nn;',
  "",
  "let inputs = randn([32, 784]);",
  "let scores = inputs@randn([784,10]);",
  "print(scores.sum(#{keepdin: true}));",
  "/// Doubles.",
  "fn double(x) { 2 * x }",
  "print(`${double(scores.mean()):.3f}`);",
  "fn kernel() {",
  "    cuda::kernel(`extern \"C\" __global__ void f(float* x) { x[0] = ${double(1)}; }`, \"f\")",
  "}",
}

local function client()
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return get({ name = "tscript" })[1]
end

--- The answer to a request about a place, both counted from 0.
local function ask(method, line, character, more)
  local params = vim.tbl_extend("force", {
    textDocument = { uri = vim.uri_from_bufnr(0) },
    position = { line = line, character = character },
  }, more or {})
  local answers, why = vim.lsp.buf_request_sync(0, method, params, 20000)
  for _, answer in pairs(answers or {}) do
    return answer.result, answer.err
  end
  fail(method .. ": " .. tostring(why))
end

local function diagnostics_arrive()
  local found = await("diagnostics", function()
    local all = vim.diagnostic.get(0)
    return #all > 0 and all
  end)
  local codes = vim.tbl_map(function(one) return one.lnum .. ":" .. one.code end, found)
  expect("the unknown keyword is told", vim.tbl_contains(codes, "4:E0203"), codes)
end

local function questions_are_answered()
  local hover = ask("textDocument/hover", 3, 5)
  expect("hover tells the shape", hover and vim.inspect(hover):find("[32, 10]", 1, true), hover)
  local completion = ask("textDocument/completion", 4, 13)
  local items = completion.items or completion
  local names = vim.tbl_map(function(item) return item.label end, items)
  expect("completion has members", vim.tbl_contains(names, "sum"), names)
  local signature = ask("textDocument/signatureHelp", 4, 17)
  expect("signature help", signature and #signature.signatures > 0, signature)
  local place = ask("textDocument/definition", 7, 10)
  expect("definition", place and vim.inspect(place):find("line = 6", 1, true), place)
  local hints = ask("textDocument/inlayHint", 0, 0, {
    range = { start = { line = 0, character = 0 }, ["end"] = { line = 8, character = 0 } },
  })
  expect("inlay hints", hints and #hints > 0, hints)
  local lenses = ask("textDocument/codeLens", 0, 0)
  local command = lenses and lenses[1] and lenses[1].command.command
  expect("a lens runs the script", command == "tscript.run" and vim.lsp.commands[command] ~= nil, lenses)
end

local function lenses_run()
  local lens = await("a lens is shown", function()
    vim.lsp.codelens.refresh({ bufnr = 0 })
    return vim.lsp.codelens.get(0)[1]
  end)
  expect("it is that of the first line", lens.range.start.line == 0, lens)
  local window = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  vim.lsp.codelens.run()
  await("it runs the script in a terminal", function()
    return vim.bo.buftype == "terminal" and table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true)):find("E0203", 1, true)
  end)
  vim.cmd("bwipeout!")
  vim.api.nvim_set_current_win(window)
end

local function edits_are_made()
  vim.lsp.buf.format({ name = "tscript", timeout_ms = 20000 })
  local line = vim.api.nvim_buf_get_lines(0, 3, 4, true)[1]
  expect("formatting", line == "let scores = inputs @ randn([784, 10]);", line)
  vim.api.nvim_buf_set_lines(0, 4, 5, true, { "print(scores.sum(#{keepdim: true}));" })
  await("a mended line has no error", function()
    return #vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR }) == 0
  end)
  local edit = ask("textDocument/rename", 2, 5, { newName = "batch" })
  expect("rename", edit, edit)
  vim.lsp.util.apply_workspace_edit(edit, client().offset_encoding)
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n")
  expect("the name is gone", not text:find("inputs"), text)
end

local function tree_sitter_reads()
  if #vim.api.nvim_get_runtime_file("parser/tscript.*", false) == 0 then
    print("no parser: tree-sitter is left out")
    return
  end
  expect("the highlighter is on", vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] ~= nil)
  local tree = vim.treesitter.get_parser(0, "tscript"):parse()[1]
  expect("no error in the tree", not tree:root():has_error(), tree:root():sexpr())
  for _, kind in ipairs({ "highlights", "locals", "folds", "indents", "injections", "textobjects" }) do
    expect("query " .. kind, vim.treesitter.query.get("tscript", kind) ~= nil)
  end
  local captures = {}
  local query = vim.treesitter.query.get("tscript", "highlights")
  for id, node in query:iter_captures(tree:root(), 0) do
    captures[vim.treesitter.get_node_text(node, 0) .. " " .. query.captures[id]] = true
  end
  local injected = {}
  local injections = vim.treesitter.query.get("tscript", "injections")
  for id, node in injections:iter_captures(tree:root(), 0) do
    if injections.captures[id] == "injection.content" then
      table.insert(injected, vim.treesitter.get_node_text(node, 0))
    end
  end
  expect("CUDA in a kernel, around its values", vim.tbl_contains(injected, "; }"), injected)
  for _, wanted in ipairs({ "randn function.builtin", "double function", "nn module", "keepdim property", ":.3f string.special" }) do
    expect("color: " .. wanted, captures[wanted], vim.tbl_keys(captures))
  end
end

try(function()
  vim.cmd("filetype plugin indent on | syntax on")
  local path = vim.fn.tempname() .. ".rhai"
  vim.fn.writefile(SCRIPT, path)
  vim.cmd.edit(path)
  expect("the file is tscript", vim.bo.filetype == "tscript", vim.bo.filetype)
  await("the server starts", function()
    local started = client()
    return started and started.server_capabilities and started.server_capabilities.hoverProvider and started
  end)
  diagnostics_arrive()
  questions_are_answered()
  lenses_run()
  edits_are_made()
  tree_sitter_reads()
  vim.cmd("qall!")
end)
