import type { FormFile, Input, RawBody } from './options.ts'

/** @param path `/users/:id`, `/files/*` */
export function targetOf(path: string, { params = {}, query = {} }: Input): string {
  const filled = path
    .split('/')
    .map((segment) => {
      // A slash in it is one of the path.
      if (segment === '*') return encodeURIComponent(String(params['*'] ?? '')).replaceAll('%2F', '/')
      return segment.startsWith(':') ? encodeURIComponent(String(params[segment.slice(1)])) : segment
    })
    .join('/')
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each != null) search.append(name, textOf(each))
  }
  const text = search.toString()
  return text === '' ? filled : `${filled}?${text}`
}

export interface EncodedBody {
  body: RawBody | undefined
  /** Undefined where `fetch` knows it. */
  type: string | undefined
  /** A stream cannot be sent again. */
  isRepeatable: boolean
}

/** @param isRaw a text is sent as it is, and not as JSON */
export function encodedBody({ body, files, contentType }: Input, isRaw: boolean): EncodedBody {
  if (body instanceof FormData || body instanceof URLSearchParams) return { body, type: undefined, isRepeatable: true }
  if (files !== undefined) return { body: formOf(body, files), type: undefined, isRepeatable: true }
  if (body === undefined) return { body: undefined, type: contentType, isRepeatable: true }
  if (body instanceof ReadableStream) return { body, type: contentType ?? BYTES, isRepeatable: false }
  if (body instanceof Blob) return { body, type: contentType ?? (body.type || BYTES), isRepeatable: true }
  if (body instanceof Uint8Array || body instanceof ArrayBuffer) {
    return { body, type: contentType ?? BYTES, isRepeatable: true }
  }
  if (isRaw && typeof body === 'string') return { body, type: contentType ?? 'text/plain', isRepeatable: true }
  return { body: JSON.stringify(body), type: contentType ?? 'application/json', isRepeatable: true }
}

const BYTES = 'application/octet-stream'

/** Values of a form are texts; a list is one field for each of its items. */
function formOf(body: unknown, files: Record<string, FormFile | readonly FormFile[]>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries((body ?? {}) as object)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each != null) form.append(name, typeof each === 'object' ? JSON.stringify(each) : String(each))
    }
  }
  for (const [field, value] of Object.entries(files)) {
    for (const file of (Array.isArray(value) ? value : [value]) as readonly FormFile[]) {
      if (file instanceof Blob) form.append(field, file)
      else {
        const { name, content, type } = file
        form.append(field, new Blob([content as Blob], type === undefined ? {} : { type }), name)
      }
    }
  }
  return form
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** JSON as its value, text as text, no body as undefined, and anything else as a `Blob`. */
export async function contentOf(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  if (/[/+]json\b/i.test(type)) {
    const text = await response.text()
    return text === '' ? undefined : JSON.parse(text)
  }
  if (/^text\/|ndjson/i.test(type)) return response.text()
  const blob = await response.blob()
  return blob.size === 0 ? undefined : blob
}
