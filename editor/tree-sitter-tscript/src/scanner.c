// The tokens of tscript that regular expressions cannot cut: comments that nest, raw strings with their hashes, the texts
// inside of quotes and backticks, formats of interpolations, and `1.`.

#include "tree_sitter/alloc.h"
#include "tree_sitter/parser.h"

#include <string.h>

enum Token {
  BLOCK_COMMENT,
  STRING_CONTENT,
  TEMPLATE_CONTENT,
  FORMAT_SPEC,
  RAW_START,
  RAW_CONTENT,
  RAW_END,
  OPEN_FLOAT,
};

// The hashes of the raw string that is open.
typedef struct {
  uint8_t hashes;
} Scanner;

void *tree_sitter_tscript_external_scanner_create(void) { return ts_calloc(1, sizeof(Scanner)); }

void tree_sitter_tscript_external_scanner_destroy(void *payload) { ts_free(payload); }

unsigned tree_sitter_tscript_external_scanner_serialize(void *payload, char *buffer) {
  memcpy(buffer, payload, sizeof(Scanner));
  return sizeof(Scanner);
}

void tree_sitter_tscript_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  memset(payload, 0, sizeof(Scanner));
  if (length == sizeof(Scanner)) {
    memcpy(payload, buffer, length);
  }
}

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }

static bool is_name(int32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static bool found(TSLexer *lexer, enum Token token) {
  lexer->result_symbol = (TSSymbol)token;
  return true;
}

// `/* a /* b */ c */`
static bool block_comment(TSLexer *lexer) {
  advance(lexer);
  if (lexer->lookahead != '*') {
    return false;
  }
  advance(lexer);
  unsigned level = 1;
  while (level > 0) {
    if (lexer->eof(lexer)) {
      return false;
    }
    int32_t first = lexer->lookahead;
    advance(lexer);
    if (first == '/' && lexer->lookahead == '*') {
      level++;
      advance(lexer);
    } else if (first == '*' && lexer->lookahead == '/') {
      level--;
      advance(lexer);
    }
  }
  lexer->mark_end(lexer);
  return found(lexer, BLOCK_COMMENT);
}

// Text up to an escape or the quote at the end.
static bool string_content(TSLexer *lexer) {
  bool any = false;
  while (!lexer->eof(lexer) && lexer->lookahead != '"' && lexer->lookahead != '\\' && lexer->lookahead != '\n') {
    advance(lexer);
    any = true;
  }
  lexer->mark_end(lexer);
  return any && found(lexer, STRING_CONTENT);
}

// Text up to a backtick, `${` or `\${`.
static bool template_content(TSLexer *lexer) {
  bool any = false;
  while (!lexer->eof(lexer) && lexer->lookahead != '`') {
    lexer->mark_end(lexer);
    if (lexer->lookahead == '\\') {
      advance(lexer);
      if (lexer->lookahead != '$') {
        any = true;
        continue;
      }
    }
    if (lexer->lookahead == '$') {
      advance(lexer);
      if (lexer->lookahead == '{') {
        return any && found(lexer, TEMPLATE_CONTENT);
      }
    } else {
      advance(lexer);
    }
    any = true;
  }
  lexer->mark_end(lexer);
  return any && found(lexer, TEMPLATE_CONTENT);
}

// `:>8.3f`, up to the brace that ends the interpolation.
static bool format_spec(TSLexer *lexer) {
  advance(lexer);
  if (lexer->lookahead == ':') {
    return false;
  }
  unsigned level = 0;
  while (!lexer->eof(lexer) && lexer->lookahead != '\n' && lexer->lookahead != '`') {
    if (lexer->lookahead == '}' && level-- == 0) {
      lexer->mark_end(lexer);
      return found(lexer, FORMAT_SPEC);
    }
    level += lexer->lookahead == '{';
    advance(lexer);
  }
  return false;
}

// `##"`
static bool raw_start(Scanner *scanner, TSLexer *lexer) {
  uint8_t hashes = 0;
  while (lexer->lookahead == '#' && hashes < UINT8_MAX) {
    hashes++;
    advance(lexer);
  }
  if (lexer->lookahead != '"') {
    return false;
  }
  advance(lexer);
  lexer->mark_end(lexer);
  scanner->hashes = hashes;
  return found(lexer, RAW_START);
}

// Whether the quote here ends the raw string.
static bool raw_closes(Scanner *scanner, TSLexer *lexer) {
  advance(lexer);
  uint8_t hashes = 0;
  while (hashes < scanner->hashes && lexer->lookahead == '#') {
    hashes++;
    advance(lexer);
  }
  return hashes == scanner->hashes;
}

static bool raw_content(Scanner *scanner, TSLexer *lexer) {
  bool any = false;
  while (!lexer->eof(lexer)) {
    if (lexer->lookahead == '"') {
      lexer->mark_end(lexer);
      if (raw_closes(scanner, lexer)) {
        if (any) {
          return found(lexer, RAW_CONTENT);
        }
        lexer->mark_end(lexer);
        return found(lexer, RAW_END);
      }
    } else {
      advance(lexer);
    }
    any = true;
  }
  return false;
}

// `1.`, before anything but a digit, a name or a dot.
static bool open_float(TSLexer *lexer) {
  while (is_digit(lexer->lookahead) || lexer->lookahead == '_') {
    advance(lexer);
  }
  if (lexer->lookahead != '.') {
    return false;
  }
  advance(lexer);
  lexer->mark_end(lexer);
  return lexer->lookahead != '.' && !is_name(lexer->lookahead) && !lexer->eof(lexer) && found(lexer, OPEN_FLOAT);
}

bool tree_sitter_tscript_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  Scanner *scanner = payload;
  bool recovers = valid[STRING_CONTENT] && valid[TEMPLATE_CONTENT];
  if (!recovers && valid[STRING_CONTENT]) {
    return string_content(lexer);
  }
  if (!recovers && valid[TEMPLATE_CONTENT]) {
    return template_content(lexer);
  }
  if (!recovers && (valid[RAW_CONTENT] || valid[RAW_END])) {
    return raw_content(scanner, lexer);
  }
  while (is_blank(lexer->lookahead)) {
    lexer->advance(lexer, true);
  }
  switch (lexer->lookahead) {
    case '/':
      return valid[BLOCK_COMMENT] && block_comment(lexer);
    case ':':
      return valid[FORMAT_SPEC] && !recovers && format_spec(lexer);
    case '#':
      return valid[RAW_START] && raw_start(scanner, lexer);
    default:
      return is_digit(lexer->lookahead) && valid[OPEN_FLOAT] && open_float(lexer);
  }
}
