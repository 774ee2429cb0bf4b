import { HeddleError } from '../errors/catalogue.ts'
import { FORM_MAX_FIELDS } from './form.ts'
import { isForbiddenKey, isReservedKey } from './keys.ts'

/** One uploaded file in `data._files`. */
export interface UploadedFile {
  field: string
  filename: string
  type: string
  bytes: Uint8Array
}

/** Reads a multipart form from memory (the body limit bounds it): fields into `into`, files into `into._files`. */
export async function parseMultipart(
  bytes: Uint8Array,
  contentType: string,
  into: Record<string, unknown>,
): Promise<void> {
  // Loaded by the first upload: most lanes never see one.
  const { Busboy } = await import('@fastify/busboy')
  const files: UploadedFile[] = []
  await new Promise<void>((resolve, reject) => {
    const refuse = (why: string): void => reject(new HeddleError('HTTP_BAD_REQUEST', `The multipart body ${why}`))
    let parser: InstanceType<typeof Busboy>
    try {
      // The body limit bounds a field: the parser's own limit would cut it off without a word.
      parser = new Busboy({
        headers: { 'content-type': contentType },
        limits: { parts: FORM_MAX_FIELDS, fieldSize: Infinity },
      })
    } catch {
      return refuse('has no valid boundary')
    }
    parser.on('field', (name: string | undefined, value) => {
      // What is thrown in here reaches nobody but the thread.
      if (name === undefined) return refuse('has a part without a name')
      if (isForbiddenKey(name)) return refuse(`has the forbidden key ${name}`)
      if (isReservedKey(name)) return
      // An own one only: a field may be called `toString`.
      const before = Object.hasOwn(into, name) ? into[name] : undefined
      into[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
    })
    parser.on('file', (field: string | undefined, stream, filename, _encoding, type) => {
      // Before anything else: a file that is cut off is an error of its stream, and one that nobody hears ends the thread.
      stream.on('error', () => refuse('is broken'))
      if (field === undefined) {
        stream.resume()
        return refuse('has a part without a name')
      }
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => files.push({ field, filename: filename ?? '', type, bytes: Buffer.concat(chunks) }))
    })
    parser.on('partsLimit', () => refuse(`has more than ${FORM_MAX_FIELDS} parts`))
    parser.on('error', () => refuse('is malformed'))
    parser.on('finish', () => resolve())
    parser.end(bytes)
  })
  into._files = files
}
