import { ANY_DIALECT, tokenizeSql } from '../../stores/sql/tokens.ts'
import { type TableMention, tablesOf } from './sql-tables.ts'
import { lineIndex } from './syntax.ts'

/** The facts of one migration that the rules need. Plain data, kept while the file is unchanged. */
export interface MigrationFacts {
  /** The targets of `-- depends: <domain>/<NNN_name>` in the header. */
  depends: Array<{ target: string; line: number }>
  /** The same lines below the header, where the runner takes them for comments. */
  ignoredDepends: Array<{ target: string; line: number }>
  tables: Array<{ table: string; role: TableMention['role']; line: number }>
}

const DEPENDS = /^\s*depends\s*:\s*(.*?)\s*$/i

export function readMigration(sql: string): MigrationFacts {
  const lineOf = lineIndex(sql)
  const facts: MigrationFacts = { depends: [], ignoredDepends: [], tables: [] }
  // The header ends at the first line that is neither blank nor a `--` comment.
  let inHeader = true
  for (const token of tokenizeSql(sql, ANY_DIALECT)) {
    const isLineComment = token.kind === 'comment' && sql.startsWith('--', token.offset)
    inHeader &&= isLineComment
    const target = isLineComment ? DEPENDS.exec(token.text)?.[1] : undefined
    if (target === undefined) continue
    const list = inHeader ? facts.depends : facts.ignoredDepends
    list.push({ target, line: lineOf(token.offset) })
  }
  facts.tables = tablesOf(sql).map(({ table, role, offset }) => ({ table, role, line: lineOf(offset) }))
  return facts
}
