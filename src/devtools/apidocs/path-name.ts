/** A parameter of a path. */
export interface PathParameter {
  /** Its name in documents. */
  name: string
  /** Its key in the handler's `data` and in the route's schema; `*` for the rest of the path. */
  key: string
}

/** A route's path as OpenAPI writes it: `/users/{id}`. */
export interface PathName {
  text: string
  parameters: PathParameter[]
}

/**
 * The paths of a document. Two routes that differ in parameter names alone are one path in a document,
 * so both take the parameter names of the first.
 */
export class PathNames {
  readonly #byShape = new Map<string, PathName>()

  of(path: string): PathName {
    const shape = path.replace(/:[^/]+/g, ':')
    const first = this.#byShape.get(shape)
    const own = pathName(path)
    if (first === undefined) {
      this.#byShape.set(shape, own)
      return own
    }
    const parameters = own.parameters.map(({ key }, index) => ({ key, name: first.parameters[index]!.name }))
    return { text: first.text, parameters }
  }
}

function pathName(path: string): PathName {
  const segments = path.split('/')
  const taken = new Set(segments)
  const parameters: PathParameter[] = []
  const text = segments.map((segment) => {
    if (segment.startsWith(':')) {
      parameters.push({ name: segment.slice(1), key: segment.slice(1) })
      return `{${segment.slice(1)}}`
    }
    if (segment === '*') {
      const name = taken.has(':rest') ? 'rest_of_path' : 'rest'
      parameters.push({ name, key: '*' })
      return `{${name}}`
    }
    return segment.replaceAll('{', '%7B').replaceAll('}', '%7D')
  })
  return { text: text.join('/'), parameters }
}
