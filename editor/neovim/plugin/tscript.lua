-- Scripts end with `.rhai`.
vim.filetype.add({ extension = { rhai = "tscript" } })
vim.lsp.enable("tscript")
