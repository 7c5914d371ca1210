" Vim with what is beside this file: colors, indentation, the list of errors, and, where ALE is installed, the language server.
"
"     vim -N -u NONE -i NONE -es -S test.vim < /dev/null

let s:here = expand('<sfile>:p:h')
let &runtimepath = s:here . ',' . &runtimepath

let s:lines = []

function! s:Expect(what, good, told)
  call add(s:lines, (a:good ? 'ok - ' : 'failed: ') . a:what . (a:good ? '' : ': ' . string(a:told)))
  if !a:good
    call s:Tell()
    cquit
  endif
endfunction

function! s:Tell()
  call writefile(s:lines, '/dev/stdout')
endfunction

function! s:Color(text)
  call cursor(1, 1)
  call search(a:text)
  return synIDattr(synID(line('.'), col('.'), 1), 'name')
endfunction

function! s:Await(get)
  for i in range(400)
    if a:get()
      return 1
    endif
    sleep 50m
  endfor
  return 0
endfunction

let s:script = [
\ 'fn twice(x) {', '2 * x', '}', 'let s = `a ${twice(2)} b`;', 'print(zeros([2]).shape, s, #{key: 1}); // a',
\ 'print(zeros([2]).sum(#{keepdin: true}));']
let s:file = tempname() . '.rhai'
call writefile(s:script, s:file)

try
  filetype plugin indent on
  syntax on
  execute 'edit ' . s:file
  call s:Expect('the type of the file', &filetype ==# 'tscript', &filetype)
  for [s:text, s:name] in [['fn', 'tscriptDefine'], ['zeros', 'tscriptOperation'], ['shape', 'tscriptProperty'],
  \ ['key', 'tscriptKey'], ['twice(2)', 'tscriptCall'], ['// a', 'tscriptComment'], ['`a', 'tscriptString']]
    call s:Expect('color of ' . s:text, s:Color(s:text) ==# s:name, s:Color(s:text))
  endfor
  normal! gg=G
  call s:Expect('indentation', getline(1, 3) == ['fn twice(x) {', '    2 * x', '}'], getline(1, 3))
  write
  compiler tscript
  silent make! %
  let s:found = filter(getqflist(), 'v:val.valid')
  call s:Expect('the list of errors', len(s:found) == 1 && s:found[0].lnum == 6 && s:found[0].nr == 203, getqflist())
  call s:Expect('it is an error', s:found[0].type ==# 'e' && s:found[0].text =~# 'keepdin', s:found[0])
  silent! packadd ale
  if exists('g:loaded_ale')
    let g:ale_linters = {'tscript': ['tscript']}
    edit
    call ale#Queue(0, 'lint_file')
    let s:told = {-> !empty(ale#engine#GetLoclist(bufnr('')))}
    call s:Expect('ALE tells what the server finds', s:Await(s:told), ale#engine#GetLoclist(bufnr('')))
    call s:Expect('it is the keyword', ale#engine#GetLoclist(bufnr(''))[0].text =~# 'keepdin', ale#engine#GetLoclist(bufnr('')))
  else
    call add(s:lines, 'ALE is not installed: the language server is left out')
  endif
  call s:Tell()
  qall!
catch
  call s:Expect('no exception', 0, v:exception . ' at ' . v:throwpoint)
endtry
