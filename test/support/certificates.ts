import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** An authority, and certificates by it. */
export interface Authority {
  /** Its own certificate, PEM. */
  readonly caFile: string
  /** @param names for example `IP:127.0.0.1,DNS:localhost` */
  issue(name: string, names: string): Promise<{ certificateFile: string; keyFile: string }>
}

/** A new authority whose files are in `folder`, made by openssl. */
export async function authority(folder: string, name: string): Promise<Authority> {
  const path = (file: string): string => join(folder, `${name}-${file}`)
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const [caFile, caKey] = [path('ca.crt'), path('ca.key')]
  const ca = ['-addext', 'basicConstraints=critical,CA:TRUE', '-days', '2']
  await run('openssl', ['req', '-x509', ...newKey, '-keyout', caKey, '-out', caFile, '-subj', `/CN=${name}`, ...ca])
  return {
    caFile,
    issue: async (server, names) => {
      const [keyFile, request, certificateFile] = [path(`${server}.key`), path(`${server}.csr`), path(`${server}.crt`)]
      await run('openssl', ['req', ...newKey, '-keyout', keyFile, '-out', request, '-subj', `/CN=${server}`])
      const extensions = path(`${server}.ext`)
      await writeFile(extensions, `subjectAltName=${names}\n`)
      const by = ['-CA', caFile, '-CAkey', caKey, '-CAcreateserial', '-days', '2', '-extfile', extensions]
      await run('openssl', ['x509', '-req', '-in', request, '-out', certificateFile, ...by])
      return { certificateFile, keyFile }
    },
  }
}
