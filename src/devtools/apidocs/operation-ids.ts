import type { RouteInfo } from '../../contracts/route-info.ts'

/** Makes unique operation ids: `GET /users/:id` is `getUsersById`. They depend on method and path alone, so that links stay valid. */
export class OperationIds {
  readonly #taken = new Set<string>()

  of({ method, path }: Pick<RouteInfo, 'method' | 'path'>): string {
    const words = path.split('/').filter(Boolean).flatMap(wordsOf)
    const base = method.toLowerCase() + (words.length > 0 ? words.map(capital).join('') : 'Root')
    let id = base
    for (let n = 2; this.#taken.has(id); n++) id = `${base}${n}`
    this.#taken.add(id)
    return id
  }
}

/** Words of ASCII letters and digits, which both operation ids and component names allow. Other characters become their code points. */
function wordsOf(segment: string): string[] {
  if (segment === '*') return ['rest']
  const words = segment
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .map((word) => word.replace(/[^A-Za-z0-9]/gu, (char) => `u${char.codePointAt(0)!.toString(16)}`))
  return segment.startsWith(':') ? ['by', ...words] : words
}

/** The first part of the names of an operation's types. */
export function typeName(operationId: string): string {
  return capital(operationId)
}

function capital(word: string): string {
  return word[0]!.toUpperCase() + word.slice(1)
}
