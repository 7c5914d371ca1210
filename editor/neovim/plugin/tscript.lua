-- Scripts end with `.rhai`; the language server starts with the first of them.
vim.filetype.add({ extension = { rhai = "tscript" } })

if vim.lsp.enable then
  vim.lsp.enable("tscript")
else
  -- Before Neovim 0.11.
  vim.api.nvim_create_autocmd("FileType", {
    pattern = "tscript",
    callback = function(event)
      local file = vim.api.nvim_get_runtime_file("lsp/tscript.lua", false)[1]
      local config = dofile(file)
      local found = vim.fs.find(config.root_markers, { upward = true, path = vim.fs.dirname(event.file) })[1]
      local root = found and vim.fs.dirname(found)
      vim.lsp.start({ name = "tscript", cmd = config.cmd, root_dir = root, settings = config.settings })
    end,
  })
end

-- What the lenses of the server do: in a terminal below.
local function in_terminal(word)
  return function(command)
    local path = vim.uri_to_fname(command.arguments[1])
    vim.cmd("botright new")
    vim.fn.termopen({ "tscript", word, path }, { cwd = vim.fs.dirname(path) })
  end
end
vim.lsp.commands["tscript.run"] = in_terminal("run")
vim.lsp.commands["tscript.test"] = in_terminal("test")
