import { readFile } from 'node:fs/promises'
import { delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SERVING } from '../../support/shared-process.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { SECRET } from '../../support/tool-runtime.ts'

const folder = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** All that the hostile tests need of one process: probes, targets and the system's own endpoints. */
export const TARGET_DOMAINS = [SERVING, folder('./domains'), SYSTEM_ROUTES].join(delimiter)

/** What the tests of texts and tokens wish for: they share one service. */
export const TARGET = { env: { DOMAINS_DIR: TARGET_DOMAINS, AUTH_SECRET_KEY: SECRET } }

/** Resident memory of a process, bytes. Linux only: undefined elsewhere. */
export async function residentBytes(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
}

export const MIB = 1 << 20
