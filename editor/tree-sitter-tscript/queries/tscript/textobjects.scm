; Functions, arguments and comments as objects: `around` and `inside` of Helix and Zed, `outer` and `inner` of Neovim.

(function_definition body: (_) @function.inside @function.inner) @function.around @function.outer
(closure body: (_) @function.inside @function.inner) @function.around @function.outer

(parameters (identifier) @parameter.inside @parameter.inner @parameter.around @parameter.outer)
(closure_parameters (identifier) @parameter.inside @parameter.inner @parameter.around @parameter.outer)
(arguments (_) @parameter.inside @parameter.inner @parameter.around @parameter.outer)

[(line_comment) (block_comment) (doc_comment)] @comment.inside @comment.inner
(line_comment)+ @comment.around @comment.outer
(doc_comment)+ @comment.around @comment.outer
