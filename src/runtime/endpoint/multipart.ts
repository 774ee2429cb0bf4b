import type { UploadedFile } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { FORM_MAX_FIELDS } from './form.ts'
import { isForbiddenKey, isReservedKey } from './keys.ts'

/** Files of a form at most. */
export const FORM_MAX_FILES = 100
/** Length of a field's name at most; far more than any real name has. */
export const FORM_NAME_MAX_CHARS = 200
/** Headers of one part at most; the parser ignores further ones. */
const PART_MAX_HEADERS = 32
const PART_HEADERS_MAX_BYTES = 16_384
const NO_BYTES = new Uint8Array(0)

/** Reads a multipart form from memory (the body limit bounds it): fields into `into`, files into `into._files`. */
export async function parseMultipart(
  bytes: Uint8Array,
  contentType: string,
  into: Record<string, unknown>,
): Promise<void> {
  // Loaded by the first upload: most lanes never get one.
  const { Busboy } = await import('@fastify/busboy')
  const files: UploadedFile[] = []
  await new Promise<void>((resolve, reject) => {
    const refuse = (why: string): void => reject(new HeddleError('HTTP_BAD_REQUEST', `The multipart body ${why}`))
    let parser: InstanceType<typeof Busboy>
    try {
      // The body limit bounds fields and files: the parser's own limits would cut them off silently.
      parser = new Busboy({
        headers: { 'content-type': contentType },
        limits: {
          parts: FORM_MAX_FIELDS,
          files: FORM_MAX_FILES,
          fieldSize: Infinity,
          headerPairs: PART_MAX_HEADERS,
          headerSize: PART_HEADERS_MAX_BYTES,
        },
      })
    } catch {
      return refuse('has no valid boundary')
    }
    /** False when the form is refused for it. */
    const isName = (name: string | undefined): name is string => {
      // Not thrown: an error in here would end the thread.
      if (name === undefined) refuse('has a part without a name')
      else if (name.length > FORM_NAME_MAX_CHARS) refuse(`has a name of more than ${FORM_NAME_MAX_CHARS} characters`)
      else if (name.includes('\ufffd')) refuse('is not valid UTF-8')
      else if (isForbiddenKey(name)) refuse(`has the forbidden key ${name}`)
      else return true
      return false
    }
    parser.on('field', (name: string | undefined, value: string) => {
      if (!isName(name) || isReservedKey(name)) return
      if (value.includes('\ufffd')) return refuse('is not valid UTF-8')
      // Only an own property: a field may be called `toString`.
      const before = Object.hasOwn(into, name) ? into[name] : undefined
      into[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
    })
    parser.on('file', (field: string | undefined, stream, given: string | undefined, _encoding, type) => {
      // First: a file that is cut off is an error of its stream, and an error without a listener ends the thread.
      stream.on('error', () => refuse('is broken'))
      if (!isName(field)) {
        stream.resume()
        return
      }
      const filename = nameAlone(given ?? '')
      const file: UploadedFile = { field, filename, type, bytes: NO_BYTES }
      files.push(file)
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        file.bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
        // A browser sends this for a control in which no file was chosen.
        if (given === '' && file.bytes.byteLength === 0) files.splice(files.indexOf(file), 1)
      })
    })
    parser.on('partsLimit', () => refuse(`has more than ${FORM_MAX_FIELDS} parts`))
    parser.on('filesLimit', () => refuse(`has more than ${FORM_MAX_FILES} files`))
    parser.on('error', () => refuse('is malformed'))
    parser.on('finish', () => resolve())
    parser.end(bytes)
  })
  into._files = files
}

/** A file's name without folders and invisible characters. It may still be anything else. */
function nameAlone(given: string): string {
  const name = given
    .slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1)
    .replace(/[\p{Cc}\p{Bidi_Control}\ufffd]/gu, '')
  return name === '.' || name === '..' ? '' : name
}
