; Colors. Where several patterns match, the last one holds.

; Names

(identifier) @variable

((identifier) @variable.builtin
  (#any-of? @variable.builtin "this" "global"))

((identifier) @constant.builtin
  (#any-of? @constant.builtin "INF" "NAN" "PI" "E"))

((identifier) @constant
  (#match? @constant "^[A-Z][A-Z0-9_]+$"))

(const_declaration name: (identifier) @constant)

(parameters (identifier) @variable.parameter)
(closure_parameters (identifier) @variable.parameter)

[(wildcard)] @character.special

; Members, keys and modules

(member name: (identifier) @variable.member)
(entry key: (identifier) @property)
(field_pattern key: (identifier) @property)

; generated: properties
; end

(scoped_identifier path: (identifier) @module)
(import_statement alias: (identifier) @module)

; Functions

(function_definition receiver: (identifier) @type)
(function_definition name: (identifier) @function)
(let_declaration name: (identifier) @function value: (closure))

(call function: (identifier) @function.call)
(call function: (scoped_identifier name: (identifier) @function.call))
(call function: (member name: (identifier) @function.method.call))

; generated: operations and native functions
; end

(with_expression context: (identifier) @keyword)
(with_expression context: (call function: (identifier) @keyword))

; Literals

(string) @string
(raw_string) @string
(template) @string
(import_statement path: (string) @string.special.path)
(escape_sequence) @string.escape
(character) @character
(integer) @number
(float) @number.float
(boolean) @boolean
(format_spec) @string.special
(interpolation ["${" "}"] @punctuation.special)

; Comments

(line_comment) @comment @spell
(block_comment) @comment @spell
(doc_comment) @comment.documentation @spell
(shebang) @keyword.directive

; Words

["let" "const"] @keyword
"fn" @keyword.function
["private" "export"] @keyword.modifier
["import" "as"] @keyword.import
["if" "else" "switch"] @keyword.conditional
["for" "while" "loop" "do" "until" "break"] @keyword.repeat
(continue_statement) @keyword.repeat
"return" @keyword.return
["try" "catch" "throw"] @keyword.exception
["in" "!in"] @keyword.operator

; Operators and marks

(unary_expression operator: _ @operator)
(binary_expression operator: ["||" "&&" "==" "!=" "<" "<=" ">" ">=" "??" "|" "^" "&" "+" "-" "*" "/" "%" "@" "<<" ">>" "**"] @operator)
["=" "+=" "-=" "*=" "/=" "%=" "**=" "<<=" ">>=" "&=" "|=" "^=" ".." "..=" "=>"] @operator
(call "!" @operator)

["(" ")" "[" "]" "{" "}" "#{" "?["] @punctuation.bracket
(closure_parameters ["|" "||"] @punctuation.bracket)
["," ";" "::" ":" "." "?."] @punctuation.delimiter
