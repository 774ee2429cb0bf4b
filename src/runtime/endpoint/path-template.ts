import { HeddleError } from '../../core/errors/catalogue.ts'

/** A route's path, ready to read parameters from a raw path that matched it. */
export class PathTemplate {
  readonly text: string
  readonly hasParameters: boolean
  readonly #segments: { index: number; name: string; isRest: boolean }[] = []

  constructor(text: string) {
    this.text = text
    text.split('/').forEach((segment, index) => {
      if (segment.startsWith(':')) this.#segments.push({ index, name: segment.slice(1), isRest: false })
      else if (segment === '*') this.#segments.push({ index, name: '*', isRest: true })
    })
    this.hasParameters = this.#segments.length > 0
  }

  /** Each segment is decoded once; a wildcard's rest stands under `*`. */
  read(path: string, into: Record<string, unknown>): void {
    let slashes = 0
    let from = 0
    for (const { index, name, isRest } of this.#segments) {
      for (; slashes < index && from >= 0; slashes++) from = path.indexOf('/', from) + 1 || -1
      const end = from < 0 || isRest ? -1 : path.indexOf('/', from)
      const raw = from < 0 ? '' : end < 0 ? path.slice(from) : path.slice(from, end)
      into[name] = raw.includes('%') ? decodeSegment(raw) : raw
    }
  }
}

function decodeSegment(raw: string): string {
  let text: string
  try {
    text = decodeURIComponent(raw)
  } catch {
    throw new HeddleError('HTTP_BAD_REQUEST', 'The path has invalid percent-encoding')
  }
  if (text.includes('\0')) throw new HeddleError('HTTP_BAD_REQUEST', 'The path has a NUL')
  return text
}
