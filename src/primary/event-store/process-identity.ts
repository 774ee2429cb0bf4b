// Which process this is, and whether another one of this machine is dead.
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Identifies a process among all that may use one store. */
export interface ProcessIdentity {
  readonly host: string
  readonly pid: number
  /** The system and, in a container, the container, in which the pid means this process; null where that cannot be told. */
  readonly scope: string | null
  /** When it started, in ticks of the system: a pid is used again. Null where that cannot be told. */
  readonly started: string | null
}

/** What a process of a shared store knows of itself and of the others. */
export interface Processes {
  /** This one, as JSON for the others. */
  own(): string
  /** True only for one that has certainly ended. @param identity what it has written of itself */
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

/** The process that a text names; empty for one that no process of this service has written. */
export function identityIn<Identity extends ProcessIdentity = ProcessIdentity>(text: string): Partial<Identity> {
  try {
    return Object(JSON.parse(text)) as Partial<Identity>
  } catch {
    return {}
  }
}

/** True only for a process of this same system that has certainly ended. */
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

/** Two containers may have one host name and the same pids: the boot and the namespace of pids tell them apart. Linux alone. */
function scopeOf(): string | null {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return null // Another system: a host name and a pid have to do.
  }
}

/** Null when there is no such process, or it has ended and only its parent has not looked yet. */
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
