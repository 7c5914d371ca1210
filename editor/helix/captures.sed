# Names of Neovim, which the queries have, as Helix has them.
s/@variable\.member/@variable.other.member/
s/@property/@variable.other.member/
s/@module/@namespace/
s/@function\.method\.call/@function.method/
s/@function\.call/@function/
s/@string\.escape/@constant.character.escape/
s/@character\.special/@variable.builtin/
s/@character/@constant.character/
s/@number\.float/@constant.numeric.float/
s/@number/@constant.numeric.integer/
s/@boolean/@constant.builtin.boolean/
s/@keyword\.\(conditional\|repeat\|return\|exception\|import\)/@keyword.control.\1/
s/@keyword\.modifier/@keyword.storage.modifier/
s/@comment\.documentation/@comment.line.documentation/
s/ @spell//
# Helix has no grammar of CUDA.
s/(#set! injection\.language "cuda")/(#set! injection.language "cpp")/
