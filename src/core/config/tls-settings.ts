import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { messageOf } from '../errors/description.ts'
import { isLoopback } from './loopback.ts'
import type { Settings } from './schema.ts'

/** A setting that has a fault of its own is missing. */
type Given = Partial<Settings>

/** Checks that a file of authorities can be read, and that it is used. */
export function checkTls({ rdbTls, rdbCaFile, kvTls, kvCaFile }: Given, faults: string[]): void {
  checkCaFile('RDB', rdbTls, rdbCaFile, faults)
  checkCaFile('KV', kvTls, kvCaFile, faults)
}

/** For `KV_TLS` unset. The store gets its password as text, whatever it asks for: only TLS hides it. */
export function warnOfClearText({ kvHost, kvPassword }: Given, warnings: string[]): void {
  if (!kvPassword || kvHost === undefined || isLoopback(kvHost)) return
  warnings.push(
    `KV_TLS is not set: KV_PASSWORD and all data go to KV_HOST (${kvHost}) as text; set it to verify, or to off where nobody else reads that network`,
  )
}

function checkCaFile(prefix: string, mode: string | undefined, file: string | undefined, faults: string[]): void {
  if (file === undefined || mode === undefined) return
  const name = `${prefix}_CA_FILE`
  // Whoever sets it believes that certificates are checked.
  if (mode !== 'verify') {
    faults.push(`${name}: expected nothing unless ${prefix}_TLS is verify, got ${JSON.stringify(file)}`)
    return
  }
  try {
    new X509Certificate(readFileSync(file))
  } catch (error) {
    faults.push(`${name}: expected a PEM file of certificates, got ${JSON.stringify(file)} (${messageOf(error)})`)
  }
}
