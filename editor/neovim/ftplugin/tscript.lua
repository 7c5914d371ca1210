-- Colors and folds by tree-sitter, where its parser is installed; else those of `syntax/tscript.vim` hold.
if pcall(vim.treesitter.start, 0, "tscript") then
  vim.wo[0][0].foldmethod = "expr"
  vim.wo[0][0].foldexpr = "v:lua.vim.treesitter.foldexpr()"
  vim.wo[0][0].foldlevel = 99
end
