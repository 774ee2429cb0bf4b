import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { addressFault, listeningSockets } from './address.ts'

/** Why an address cannot be listened on: the HTTP library only says that it cannot. */
export async function listenFault(host: string, port: number, name: 'HTTP' | 'SYSTEM'): Promise<string> {
  const code = await addressFault(host, port)
  switch (code) {
    case 'EADDRINUSE': {
      const holder = holderOf(port)
      const who = holder === undefined ? 'another process' : `${holder.command} (process ${holder.pid})`
      return `the port is taken by ${who}. Stop it, or choose another port: ${name}_PORT=${port === 65_535 ? 8000 : port + 1}, or 0 for any free one`
    }
    case 'EADDRNOTAVAIL':
      return `this machine has no address ${host}. ${name}_HOST=127.0.0.1 serves this machine alone, 0.0.0.0 everybody`
    case 'EACCES':
      return `this user may not listen on port ${port}. Choose one from 1024 on: ${name}_PORT=8000`
    case 'ENOTFOUND':
      return `there is no host ${host}. ${name}_HOST is an address of this machine`
    default:
      return `the address is taken or not ours${code === undefined ? '' : ` (${code})`}`
  }
}

/** The process that listens on a port, as far as Linux tells this user. Source: proc(5), /proc/net/tcp and /proc/[pid]/fd. */
function holderOf(port: number): { pid: number; command: string } | undefined {
  const sockets = new Set(listeningSockets(port).map((inode) => `socket:[${inode}]`))
  if (sockets.size === 0) return undefined
  for (const pid of namesIn('/proc').filter((name) => /^\d+$/.test(name))) {
    if (!namesIn(`/proc/${pid}/fd`).some((fd) => sockets.has(targetOf(`/proc/${pid}/fd/${fd}`)))) continue
    // The rest of a command line may hold secrets.
    const words = textOf(`/proc/${pid}/cmdline`)
      .split('\0')
      .filter((word) => word !== '')
    return { pid: Number(pid), command: commandOf(words) }
  }
  return undefined
}

/** The name of the program and of the script that it runs. */
function commandOf(words: readonly string[]): string {
  const script = words.slice(1).find((word) => /\.[cm]?[jt]s$/.test(word))
  return [words[0]?.split('/').at(-1) || 'a process', ...(script === undefined ? [] : [script])].join(' ')
}

// The files of another user's process cannot be read, and a process that has ended has none: then the holder is not named.

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    return ''
  }
}
