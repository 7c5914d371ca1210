// tscript for tree-sitter. The truth is `src/script/source`: `lex.rs` cuts tokens, `tree.rs` has the precedences.
//
// `src/scanner.c` reads what regular expressions cannot: nested comments, raw strings, text between backticks, `1.`.

/** Precedences: those of `binary_precedence`, and around them. */
const PREC = {
  closure: 1,
  assignment: 2,
  or: 30,
  and: 60,
  equality: 90,
  membership: 110,
  comparison: 130,
  otherwise: 135,
  range: 140,
  bit_or: 142,
  bit_xor: 144,
  bit_and: 146,
  sum: 150,
  product: 180,
  shift: 210,
  unary: 220,
  power: 230,
  postfix: 250,
};

/** Functions that take a block behind their arguments; those without arguments may leave out the parentheses. */
const WITH_BLOCK = ['with_device', 'with_stream', 'set_grad_enabled', 'autocast'];
const WITH_BARE_BLOCK = ['no_grad', 'enable_grad', 'inference_mode', 'detect_anomaly'];

/** The last statement of a block needs no `;`. */
const statements = ($) => seq(repeat($._statement), optional($._unended));

const comma = (rule) => optional(seq(rule, repeat(seq(',', rule)), optional(',')));

module.exports = grammar({
  name: 'tscript',

  word: ($) => $.identifier,

  extras: ($) => [/\s/, $.line_comment, $.doc_comment, $.block_comment],

  externals: ($) => [
    $.block_comment,
    $._string_content,
    $._template_content,
    $.format_spec,
    $._raw_start,
    $._raw_content,
    $._raw_end,
    $._open_float,
  ],

  supertypes: ($) => [$.expression],

  inline: ($) => [$._body, $._callee],

  rules: {
    source_file: ($) => seq(optional($.shebang), statements($)),

    shebang: () => token(prec(1, /#![^\n]*/)),
    // Of two tokens of one length the first holds: `//// ..` is a line comment.
    doc_comment: () => token(/\/\/(\/([^\/\n][^\n]*)?|![^\n]*)/),
    line_comment: () => token(/\/\/[^\n]*/),

    // Statements ---------------------------------------------------------------------------------------------------

    // What ends in a block needs no `;`.
    _statement: ($) => choice(';', $.function_definition, seq($._unended, ';'), prec(1, $._ends_in_block)),

    _unended: ($) =>
      choice(
        $.expression,
        $.assignment,
        $.let_declaration,
        $.const_declaration,
        $.import_statement,
        $.export_statement,
        $._leaves,
      ),

    let_declaration: ($) => seq('let', $._declared),
    const_declaration: ($) => seq('const', $._declared),
    _declared: ($) => seq(field('name', $._pattern), optional(seq('=', field('value', $.expression)))),

    import_statement: ($) =>
      seq('import', field('path', $.expression), optional(seq('as', field('alias', $.identifier)))),

    export_statement: ($) =>
      seq(
        'export',
        choice(
          $.let_declaration,
          $.const_declaration,
          seq(field('name', $.identifier), optional(seq('as', field('alias', $.identifier)))),
        ),
      ),

    function_definition: ($) =>
      seq(
        optional('private'),
        'fn',
        optional(seq(field('receiver', choice($.identifier, $.string)), '.')),
        field('name', $.identifier),
        field('parameters', $.parameters),
        field('body', $.block),
      ),

    parameters: ($) => seq('(', comma($.identifier), ')'),

    assignment: ($) =>
      prec.right(
        PREC.assignment,
        seq(
          field('left', $.expression),
          field('operator', choice('=', '+=', '-=', '*=', '/=', '%=', '**=', '<<=', '>>=', '&=', '|=', '^=')),
          field('right', $.expression),
        ),
      ),

    return_statement: ($) => prec.right(seq('return', optional($.expression))),
    throw_statement: ($) => prec.right(seq('throw', optional($.expression))),
    break_statement: ($) => prec.right(seq('break', optional($.expression))),
    continue_statement: () => 'continue',

    block: ($) => seq('{', statements($), '}'),

    // Patterns -----------------------------------------------------------------------------------------------------

    _pattern: ($) => choice($.identifier, $.wildcard, $.array_pattern, $.map_pattern),
    wildcard: () => '_',
    array_pattern: ($) => seq('[', comma(choice($._pattern, $.rest_pattern)), ']'),
    map_pattern: ($) => seq('#{', comma(choice($.identifier, $.field_pattern, $.rest_pattern)), '}'),
    field_pattern: ($) => seq(field('key', choice($.identifier, $.string)), ':', field('value', $._pattern)),
    rest_pattern: ($) => seq('..', optional(choice($.identifier, $.wildcard))),
    pair_pattern: ($) => seq('(', comma(choice($.identifier, $.wildcard)), ')'),

    // What ends in a block -----------------------------------------------------------------------------------------

    _ends_in_block: ($) =>
      choice(
        $.block,
        $.if_expression,
        $.while_expression,
        $.loop_expression,
        $.for_expression,
        $.switch_expression,
        $.try_expression,
        $.with_expression,
      ),

    if_expression: ($) =>
      seq('if', field('condition', $.expression), field('consequence', $.block), optional($.else_clause)),
    else_clause: ($) => seq('else', choice($.block, $.if_expression)),

    while_expression: ($) => seq('while', field('condition', $.expression), field('body', $.block)),
    loop_expression: ($) => seq('loop', field('body', $.block)),
    do_expression: ($) =>
      prec.right(seq('do', field('body', $.block), choice('while', 'until'), field('condition', $.expression))),
    for_expression: ($) =>
      seq(
        'for',
        field('name', choice($._pattern, $.pair_pattern)),
        'in',
        field('value', $.expression),
        field('body', $.block),
      ),

    switch_expression: ($) => seq('switch', field('value', $.expression), field('body', $.switch_body)),
    switch_body: ($) => seq('{', repeat($.switch_case), optional(alias($._last_case, $.switch_case)), '}'),
    switch_case: ($) => seq($._case_head, choice(seq($._case_value, ','), prec(1, seq(field('value', $._ends_in_block), optional(','))))),
    _last_case: ($) => seq($._case_head, $._case_value),
    _case_head: ($) => seq($.case_patterns, optional(field('guard', seq('if', $.expression))), '=>'),
    _case_value: ($) => field('value', choice($.expression, $.assignment, $._leaves)),
    case_patterns: ($) => seq($._case_pattern, repeat(seq('|', $._case_pattern))),
    // Here `|` is no operator.
    _case_pattern: ($) => prec(PREC.bit_or + 1, choice($.expression, $.wildcard)),

    try_expression: ($) => seq('try', field('body', $.block), $.catch_clause),
    catch_clause: ($) =>
      seq('catch', optional(seq('(', field('name', choice($.identifier, $.wildcard)), ')')), field('body', $.block)),

    with_expression: ($) =>
      prec(
        PREC.postfix,
        seq(
          field('context', choice(alias($._with_call, $.call), alias($._with_bare_word, $.identifier))),
          field('body', $.block),
        ),
      ),
    _with_call: ($) =>
      prec(PREC.postfix, seq(field('function', alias($._with_word, $.identifier)), field('arguments', $.arguments))),
    _with_word: ($) => choice(...WITH_BLOCK, $._with_bare_word),
    _with_bare_word: () => choice(...WITH_BARE_BLOCK),

    // Expressions --------------------------------------------------------------------------------------------------

    expression: ($) =>
      choice(
        $.identifier,
        // The functions with blocks are names like any other where no block follows.
        alias($._with_word, $.identifier),
        $.scoped_identifier,
        $.integer,
        $.float,
        $.boolean,
        $.string,
        $.raw_string,
        $.template,
        $.character,
        $.unit,
        $.array,
        $.map,
        $.parenthesized,
        $.closure,
        $.call,
        alias($._with_call, $.call),
        $.method_call,
        $.member,
        $.index,
        $.unary_expression,
        $.binary_expression,
        $.range,
        $.do_expression,
        $._ends_in_block,
      ),

    // Where a value is wanted these may stand behind `??`, `=>` and the parameters of a closure.
    _leaves: ($) => choice($.return_statement, $.throw_statement, $.break_statement, $.continue_statement),

    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
    scoped_identifier: ($) =>
      prec(PREC.postfix, seq(field('path', choice($.identifier, $.scoped_identifier)), '::', field('name', $.identifier))),

    unit: () => prec(1, seq('(', ')')),
    parenthesized: ($) => seq('(', $.expression, ')'),
    array: ($) => seq('[', comma($.expression), ']'),
    map: ($) => seq('#{', comma($.entry), '}'),
    entry: ($) => seq(field('key', choice($.identifier, $.string)), ':', field('value', $.expression)),

    closure: ($) =>
      prec.right(PREC.closure, seq(field('parameters', $.closure_parameters), field('body', $._body))),
    closure_parameters: ($) => choice('||', seq('|', comma(choice($.identifier, $.wildcard)), '|')),
    _body: ($) => choice($.expression, $.assignment, $._leaves),

    call: ($) =>
      prec(
        PREC.postfix,
        seq(field('function', $._callee), optional(alias(token.immediate('!'), '!')), field('arguments', $.arguments)),
      ),
    _callee: ($) =>
      choice(
        $.identifier,
        $.scoped_identifier,
        $.index,
        $.call,
        alias($._with_call, $.call),
        $.method_call,
        $.parenthesized,
      ),
    method_call: ($) =>
      prec(
        PREC.postfix,
        seq(
          field('value', $.expression),
          choice('.', '?.'),
          field('name', $.identifier),
          field('arguments', $.arguments),
        ),
      ),
    arguments: ($) => seq('(', comma($.expression), ')'),

    member: ($) =>
      prec(PREC.postfix, seq(field('value', $.expression), choice('.', '?.'), field('name', $.identifier))),
    index: ($) =>
      prec(PREC.postfix, seq(field('value', $.expression), choice('[', '?['), comma($.expression), ']')),

    unary_expression: ($) =>
      prec(PREC.unary, seq(field('operator', choice('-', '+', '!')), field('operand', $.expression))),

    binary_expression: ($) => {
      const left = (power, operators) =>
        prec.left(
          power,
          seq(field('left', $.expression), field('operator', operators.length > 1 ? choice(...operators) : operators[0]), field('right', $.expression)),
        );
      return choice(
        left(PREC.or, ['||']),
        left(PREC.and, ['&&']),
        left(PREC.equality, ['==', '!=']),
        left(PREC.membership, ['in', '!in']),
        left(PREC.comparison, ['<', '<=', '>', '>=']),
        prec.left(
          PREC.otherwise,
          seq(
            field('left', $.expression),
            field('operator', '??'),
            field('right', choice($.expression, $._leaves)),
          ),
        ),
        left(PREC.bit_or, ['|']),
        left(PREC.bit_xor, ['^']),
        left(PREC.bit_and, ['&']),
        left(PREC.sum, ['+', '-']),
        left(PREC.product, ['*', '/', '%', '@']),
        left(PREC.shift, ['<<', '>>']),
        prec.right(
          PREC.power,
          seq(field('left', $.expression), field('operator', '**'), field('right', $.expression)),
        ),
      );
    },

    range: ($) =>
      prec.left(
        PREC.range,
        choice(
          seq($.expression, $._range_operator, $.expression),
          seq($.expression, $._range_operator),
          seq($._range_operator, $.expression),
          $._range_operator,
        ),
      ),

    _range_operator: () => choice('..', '..='),

    // Literals -----------------------------------------------------------------------------------------------------

    integer: () => token(choice(/[0-9][0-9_]*/, /0[xX][0-9A-Fa-f_]+/, /0[oO][0-7_]+/, /0[bB][01_]+/)),
    float: ($) =>
      choice(token(/[0-9][0-9_]*(\.[0-9][0-9_]*([eE][+-]?[0-9_]+)?|[eE][+-]?[0-9_]+)/), $._open_float),
    boolean: () => choice('true', 'false'),
    character: ($) => token(/'([^'\\\n]|\\[^\n])*'/),

    string: ($) =>
      seq(
        '"',
        repeat(choice(alias($._string_content, $.string_content), $.escape_sequence)),
        token.immediate('"'),
      ),
    escape_sequence: () =>
      token.immediate(choice(/\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|\r?\n|.)/, '""')),

    raw_string: ($) =>
      seq($._raw_start, optional(alias($._raw_content, $.string_content)), $._raw_end),

    template: ($) =>
      seq(
        '`',
        repeat(
          choice(
            alias($._template_content, $.string_content),
            alias(choice(token.immediate('``'), token.immediate('\\${')), $.escape_sequence),
            $.interpolation,
          ),
        ),
        token.immediate('`'),
      ),
    interpolation: ($) => seq(token.immediate('${'), statements($), optional($.format_spec), '}'),
  },
});
