import type { UploadedFile } from '../../contracts/http-request.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { FORM_MAX_FIELDS } from './form.ts'
import { isReservedKey } from './keys.ts'
import { FORM_MAX_FILES, faultOfName, nameAlone, PARSER_LIMITS } from './multipart-names.ts'

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
      parser = new Busboy({
        headers: { 'content-type': contentType },
        limits: PARSER_LIMITS,
      })
    } catch {
      return refuse('has no valid boundary')
    }
    /** False when the form is refused for it. */
    const isName = (name: string | undefined): name is string => {
      // Not thrown: an error in here would end the thread.
      const fault = faultOfName(name)
      if (fault === undefined) return true
      refuse(fault)
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
