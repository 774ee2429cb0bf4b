import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { messageOf } from '../errors/description.ts'

export const FILE_SUFFIX = '_FILE'
/** More than any key, and less than what a wrong path (a device, a log) would bring in. */
const SECRET_MAX_BYTES = 64 * 1024

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The secrets that stand in files: `<NAME>_FILE` has the path, as orchestrators mount them. One line end at the end of the file is dropped.
 * @param faults gets a line for each file that cannot be read, and each secret that is set twice
 * @returns the secrets that were read, by name
 */
export function readSecretFiles(env: Environment, names: Iterable<string>, faults: string[]): Record<string, string> {
  const secrets: Record<string, string> = {}
  for (const name of names) {
    const path = env[name + FILE_SUFFIX]?.trim() ?? ''
    if (path === '') continue
    if ((env[name] ?? '') !== '') {
      faults.push(`${name}${FILE_SUFFIX}: expected nothing because ${name} is set, got ${JSON.stringify(path)}`)
      continue
    }
    try {
      secrets[name] = readSecret(resolve(path))
    } catch (error) {
      faults.push(`${name}${FILE_SUFFIX}: expected a file with the secret, got ${messageOf(error)}`)
    }
  }
  return secrets
}

function readSecret(file: string): string {
  const stats = statSync(file)
  // A pipe would block the start until somebody writes.
  if (!stats.isFile()) throw new Error(`${file}, which is not a file`)
  if (stats.size > SECRET_MAX_BYTES) throw new Error(`${file} with ${stats.size} bytes, more than ${SECRET_MAX_BYTES}`)
  const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  if (text.trim() === '') throw new Error(`${file}, which is empty`)
  return text
}
