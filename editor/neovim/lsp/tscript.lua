-- The language server. `vim.lsp.config("tscript", { .. })` changes it.
return {
  cmd = { "tscript", "lsp" },
  filetypes = { "tscript" },
  root_markers = { "main.rhai", ".git" },
  settings = { tscript = { inlayHints = { shapes = true, parameterNames = true }, format = { width = 100 } } },
}
