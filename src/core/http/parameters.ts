// `value; name=text; name="text"` of a header.

import { withoutBlanks } from './http-error.ts'

/** A header's value and its parameters, whose names are in lower case. */
export interface Parameters {
  /** In lower case. */
  readonly value: string
  readonly parameters: ReadonlyMap<string, string>
}

/** A parameter: its name, and a quoted text or any other. No two neighbours may take the same characters, or one header is tried for minutes. */
const PARAMETER = /[ \t]*([^\s=;"]+)[ \t]*=(?:[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*|([^;"]*))(?:;|$)|[ \t]*(?:;|$)/sy

const unescaped = (quoted: string): string => quoted.replace(/\\(.)/gs, '$1')

/**
 * Reads a header's value with its parameters. Source: RFC 9110, section 5.6.6.
 * @param unquote what a quoted text means
 * @returns null when it is malformed, or has a parameter twice
 */
export function readParameters(text: string, unquote: (quoted: string) => string = unescaped): Parameters | null {
  const semicolon = text.indexOf(';')
  const value = withoutBlanks(semicolon < 0 ? text : text.slice(0, semicolon)).toLowerCase()
  const parameters = new Map<string, string>()
  PARAMETER.lastIndex = semicolon < 0 ? text.length : semicolon + 1
  while (PARAMETER.lastIndex < text.length) {
    const found = PARAMETER.exec(text)
    if (found === null) return null
    const [, name, quoted, plain] = found
    if (name === undefined) continue
    const key = name.toLowerCase()
    if (parameters.has(key)) return null
    parameters.set(key, quoted === undefined ? withoutBlanks(plain!) : unquote(quoted))
  }
  return { value, parameters }
}
