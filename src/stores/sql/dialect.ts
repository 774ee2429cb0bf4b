/** The token rules in which the databases differ. */
export interface SqlDialect {
  /** A block comment may hold another one. */
  nestedComments: boolean
  /** `$$ … $$` and `$tag$ … $tag$` are strings. */
  dollarQuotes: boolean
  /** In `E'…'` a backslash escapes the next character. */
  escapeStrings: boolean
  /** `` `name` `` is a quoted name. */
  backticks: boolean
  /** `[name]` is a quoted name: always, never, or unless the bracket opens a subscript or a list of values. */
  bracketNames: 'always' | 'never' | 'unless-subscript'
  /** Placeholders: `$1`, `?` and `?1` alone, or also `:name`, `@name`, `$name` and `#name`. */
  namedPlaceholders: boolean
}

/** Source: PostgreSQL manual, 4.1. Relies on `standard_conforming_strings`, which the connection turns on. */
export const POSTGRES_DIALECT: SqlDialect = {
  nestedComments: true,
  dollarQuotes: true,
  escapeStrings: true,
  backticks: false,
  bracketNames: 'never',
  namedPlaceholders: false,
}

/** Source: https://sqlite.org/src/file/src/tokenize.c */
export const SQLITE_DIALECT: SqlDialect = {
  nestedComments: false,
  dollarQuotes: false,
  escapeStrings: false,
  backticks: true,
  bracketNames: 'always',
  namedPlaceholders: true,
}

/** The rules of both, for a reader that does not know the database. */
export const ANY_DIALECT: SqlDialect = {
  nestedComments: true,
  dollarQuotes: true,
  escapeStrings: true,
  backticks: true,
  bracketNames: 'unless-subscript',
  namedPlaceholders: false,
}
