" `:compiler tscript`, then `:make %` checks the script; what is found is in the list of errors.
if exists("current_compiler")
  finish
endif
let current_compiler = "tscript"

CompilerSet makeprg=tscript\ check\ --message-format\ short
CompilerSet errorformat=%f:%l:%c:\ %trror[E%n]:\ %m,%f:%l:%c:\ %tarning[E%n]:\ %m
