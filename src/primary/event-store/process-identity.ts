// Identifies this process, and detects dead processes of this machine.
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Identity of a process, unique in its store. */
export interface ProcessIdentity {
  readonly host: string
  readonly pid: number
  /** The system and, in a container, the container where the pid is valid; null if unknown. */
  readonly scope: string | null
  /** Start time, in ticks of the system: pids are used again. Null if unknown. */
  readonly started: string | null
}

/** Identities and life signs of the processes of a shared store. */
export interface Processes {
  /** Identity of this process, as JSON for the others. */
  own(): string
  /** True only for a process that has certainly ended. @param identity its own JSON */
  isKnownDead(identity: string): boolean
}

/** The processes of the system. */
export const SYSTEM_PROCESSES: Processes = {
  own: () => JSON.stringify(ownIdentity()),
  isKnownDead: (identity) => isKnownDead(identityIn(identity)),
}

/** This process. */
export function ownIdentity(): ProcessIdentity {
  return { host: hostname(), pid: process.pid, scope: scopeOf(), started: startOf(process.pid) }
}

/** Returns the process of a JSON text; empty for a text of another origin. */
export function identityIn<Identity extends ProcessIdentity = ProcessIdentity>(text: string): Partial<Identity> {
  try {
    return Object(JSON.parse(text)) as Partial<Identity>
  } catch {
    return {}
  }
}

/** True only for an ended process of this same system. */
export function isKnownDead({ host, pid, scope, started }: Partial<ProcessIdentity>): boolean {
  if (host !== hostname() || scope !== scopeOf() || pid === undefined || !Number.isSafeInteger(pid) || pid < 1)
    return false
  if (scope !== null) return typeof started === 'string' && startOf(pid) !== started
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Two containers may have one host name and the same pids: the boot id and the pid namespace tell them apart. Linux only. */
function scopeOf(): string | null {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return null // Another system: a host name and a pid have to do.
  }
}

/** Returns null for a missing process, and for an ended one its parent has not collected yet. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field, the program's name, may hold blanks and parentheses. Source: proc(5).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null)
  } catch {
    return null
  }
}
