import { withoutBlanks } from '../../core/http/header-text.ts'

/** Bytes of a file, both ends included. */
export interface ByteRange {
  readonly from: number
  readonly to: number
}

/**
 * The one range that a request asks for: null for the whole file, also where the header is malformed or asks for several;
 * `unsatisfiable` when nothing of the file is in it. Source: RFC 9110, section 14.
 */
export function byteRange(header: string | undefined, fileBytes: number): ByteRange | 'unsatisfiable' | null {
  const match = header === undefined ? null : /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(withoutBlanks(header))
  if (match === null) return null
  const [, first = '', last = ''] = match
  if (first === '') {
    if (last === '') return null
    const wanted = Math.min(Number(last), fileBytes)
    return wanted === 0 ? 'unsatisfiable' : { from: fileBytes - wanted, to: fileBytes - 1 }
  }
  const from = Number(first)
  const to = last === '' ? fileBytes - 1 : Math.min(Number(last), fileBytes - 1)
  if (last !== '' && Number(last) < from) return null
  return from >= fileBytes ? 'unsatisfiable' : { from, to }
}
