-- Neovim 0.11 or newer reads this file with `:set exrc`.
vim.filetype.add({ extension = { rhai = "tscript" } })
vim.lsp.config("tscript", { cmd = { "tscript", "lsp" }, filetypes = { "tscript" }, root_markers = { "main.rhai" } })
vim.lsp.enable("tscript")
