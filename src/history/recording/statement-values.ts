import { isSecretName, isSecretText, withoutSecretsInText } from '../../core/schemas/secret-fields.ts'
import { type KnownSecrets, SECRET } from '../../core/schemas/secret-texts.ts'

const INSERT = /\binsert\s+into\s+[^\s(]+\s*\(([^)]*)\)\s*values\s*/i
const COMPARED = /([\w".]+)\s*(?:=|<>|!=|<=?|>=?|\bis|\blike|\bilike)\s*\$(\d+)/gi
const PLACEHOLDER = /^\$(\d+)$/
const WORD = /[A-Za-z_]\w*/g

/**
 * The values of a statement, without those of columns that have the name of a secret, or that nobody knows in a statement that has such names.
 * @param found secrets, whatever the column
 */
export function shownValues(text: string, values: readonly unknown[], found: KnownSecrets): unknown[] {
  const columns = columnsOf(text)
  const hasSecret = (text.match(WORD) ?? []).some(isSecretName)
  return values.map((value, index) => {
    if (value === null) return value
    const column = columns.get(index + 1)
    const isSecret = column === undefined ? hasSecret : isSecretName(column)
    if (isSecret || isSecretText(value) || found.has(value)) return SECRET
    return typeof value === 'string' ? withoutSecretsInText(value, null, found) : value
  })
}

/** The column that each placeholder is stored in or compared with, as far as the text says. */
function columnsOf(text: string): Map<number, string> {
  const columns = new Map<number, string>()
  for (const [, column, number] of text.matchAll(COMPARED)) columns.set(Number(number), bare(column!))
  const insert = INSERT.exec(text)
  if (insert === null) return columns
  const names = insert[1]!.split(',').map((name) => bare(name.trim()))
  for (const row of rowsOf(text.slice(insert.index + insert[0].length))) {
    for (const [index, part] of row.entries()) {
      const number = PLACEHOLDER.exec(part)?.[1]
      if (number !== undefined && names[index] !== undefined) columns.set(Number(number), names[index])
    }
  }
  return columns
}

/** The rows of VALUES that hold nothing in brackets. */
const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/\(([^()]*)\)/g)].map(([, row]) => row!.split(',').map((part) => part.trim()))

const bare = (column: string): string => column.replaceAll('"', '').split('.').at(-1)!
