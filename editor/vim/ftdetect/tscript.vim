" Scripts of tscript.
autocmd BufRead,BufNewFile *.rhai setfiletype tscript
