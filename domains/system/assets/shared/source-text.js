/** Values as the source text of JavaScript and of a shell has them. It imports nothing. */

/** A line of a literal is not longer than this, where it can be broken. */
const WIDTH = 76

/** A part of a literal that is code. */
export class Source {
  constructor(text) {
    this.text = text
  }
}

/** A word for a POSIX shell. */
export const shellWord = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/** A text as a literal. */
export const quoted = (text) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'").replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`

/** A JSON value as JavaScript writes it, on one line if it fits. @param used characters that stand before it on its line */
export function literal(value, indent = '', used = indent.length) {
  const line = inline(value)
  const isWhole = typeof value !== 'object' || value === null || value instanceof Source
  if (isWhole || used + line.length <= WIDTH) return line
  const inner = `${indent}  `
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => `${inner}${literal(item, inner)},\n`).join('')}${indent}]`
  }
  const rows = Object.entries(value).map(([name, item]) => {
    const key = `${inner}${keyOf(name)}: `
    return `${key}${literal(item, inner, key.length)},\n`
  })
  return `{\n${rows.join('')}${indent}}`
}

function inline(value) {
  if (value instanceof Source) return value.text
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value).map(([name, item]) => `${keyOf(name)}: ${inline(item)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

/** `__proto__: …` in a literal sets the prototype. */
function keyOf(name) {
  if (name === '__proto__') return `['${name}']`
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)
}
