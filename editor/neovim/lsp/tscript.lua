-- The language server, for Neovim 0.11 and newer.
return {
  cmd = { "tscript", "lsp" },
  filetypes = { "tscript" },
  root_markers = { ".git" },
}
