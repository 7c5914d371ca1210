; One step inside each bracket. The names are those of nvim-treesitter (`indent.begin`), Helix (`indent`, `outdent`) and Zed
; (`indent`, `end`).

[
  (block)
  (switch_body)
  (map)
  (array)
  (arguments)
  (index)
  (parameters)
  (parenthesized)
  (map_pattern)
  (array_pattern)
] @indent @indent.begin

(_ "{" "}" @end @outdent @indent.branch)
(_ "#{" "}" @end @outdent @indent.branch)
(_ "[" "]" @end @outdent @indent.branch)
(_ "?[" "]" @end @outdent @indent.branch)
(_ "(" ")" @end @outdent @indent.branch)

[
  (line_comment)
  (doc_comment)
  (block_comment)
  (template)
  (raw_string)
] @indent.auto
