import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Certificate {
  key: Buffer
  certificate: Buffer
  /** The certificate as a file: what a client is told to trust. */
  path: string
  remove(): Promise<void>
}

/** A certificate for 127.0.0.1 and localhost that signs itself, good for a day. */
export async function selfSigned(): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-otlp-'))
  const [keyPath, path] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'],
      ...['-keyout', keyPath, '-out', path],
    ])
    return { key: await readFile(keyPath), certificate: await readFile(path), path, remove }
  } catch (error) {
    await remove()
    throw error
  }
}
