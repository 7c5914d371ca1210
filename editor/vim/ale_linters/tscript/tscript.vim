" The language server for ALE, which finds this file itself.
call ale#linter#Define('tscript', {
\   'name': 'tscript',
\   'lsp': 'stdio',
\   'executable': 'tscript',
\   'command': '%e lsp',
\   'project_root': {buffer -> fnamemodify(bufname(buffer), ':p:h')},
\})
