import { FORM_MAX_FIELDS } from './form.ts'
import { isForbiddenKey } from './keys.ts'

/** Files of a form at most. */
export const FORM_MAX_FILES = 100
/** Length of a field's name at most; far more than any real name has. */
export const FORM_NAME_MAX_CHARS = 200
/** Headers of one part at most; the parser ignores further ones. */
const PART_MAX_HEADERS = 32
const PART_HEADERS_MAX_BYTES = 16_384

/** What the parser itself is to bound. It would cut fields and files off without a word: those bounds are ours. */
export const PARSER_LIMITS = {
  parts: FORM_MAX_FIELDS,
  files: FORM_MAX_FILES,
  fieldSize: Number.POSITIVE_INFINITY,
  headerPairs: PART_MAX_HEADERS,
  headerSize: PART_HEADERS_MAX_BYTES,
}

/** Why a part may not have this name, as `The multipart body …` goes on; undefined when it may. */
export function faultOfName(name: string | undefined): string | undefined {
  if (name === undefined) return 'has a part without a name'
  if (name.length > FORM_NAME_MAX_CHARS) return `has a name of more than ${FORM_NAME_MAX_CHARS} characters`
  if (name.includes('\ufffd')) return 'is not valid UTF-8'
  return isForbiddenKey(name) ? `has the forbidden key ${name}` : undefined
}

/** A file's name without folders and invisible characters. It may still be anything else. */
export function nameAlone(given: string): string {
  const name = given
    .slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1)
    .replace(/[\p{Cc}\p{Bidi_Control}\ufffd]/gu, '')
  return name === '.' || name === '..' ? '' : name
}
