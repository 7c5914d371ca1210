" Indentation of tscript: one step inside each open bracket, a line that begins with a closing one a step back.
if exists("b:did_indent")
  finish
endif
let b:did_indent = 1

setlocal indentexpr=TscriptIndent(v:lnum)
setlocal indentkeys=0{,0},0),0],!^F,o,O
let b:undo_indent = "setlocal indentexpr< indentkeys<"

if exists("*TscriptIndent")
  finish
endif

" How many brackets a line leaves open; those in texts and comments do not count.
function! s:Opened(line)
  let bare = substitute(a:line, '"\%(\\.\|[^"\\]\)*"', '', 'g')
  let bare = substitute(bare, '//.*$', '', '')
  let bare = substitute(bare, '^\s*[])}]\+', '', '')
  return len(substitute(bare, '[^{([]', '', 'g')) - len(substitute(bare, '[^})\]]', '', 'g'))
endfunction

function! TscriptIndent(lnum)
  let previous = prevnonblank(a:lnum - 1)
  if previous == 0
    return 0
  endif
  let opened = s:Opened(getline(previous))
  let width = indent(previous) + (opened > 0 ? shiftwidth() : opened < 0 ? -shiftwidth() : 0)
  if getline(a:lnum) =~ '^\s*[])}]'
    let width -= shiftwidth()
  endif
  return max([width, 0])
endfunction
