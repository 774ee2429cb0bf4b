import type { Settings } from './schema.ts'

type Place = Pick<Settings, 'processes' | 'nodeAppInstance'>

/** The number of this process among those that its guardian runs (PROCESSES); null when it is the only one. */
export function processNumber({ processes, nodeAppInstance = 0 }: Place): number | null {
  return processes > 1 ? nodeAppInstance % processes : null
}

/**
 * Gives one of several processes what it cannot share with the others: its name, the port of `/system`, and the jobs, which run in the first.
 * @param isNamed REPLICA_ID is given
 */
export function setApart(settings: Record<string, unknown> & Settings, isNamed: boolean, faults: string[]): void {
  const number = processNumber(settings)
  if (number === null) return
  const { processes, nodeAppInstance: instance = 0, httpPort, systemPort } = settings
  const own: Partial<{ -readonly [Key in keyof Settings]: Settings[Key] }> = {}
  if (httpPort === 0) faults.push(`HTTP_PORT: expected one that ${processes} PROCESSES can share, got "0"`)
  if (isNamed) own.replicaId = `${settings.replicaId}:${instance}`
  if (number > 0) own.schedulerEnabled = false
  // 0 is any free port, for each.
  if (systemPort !== undefined && systemPort > 0) {
    own.systemPort = systemPort + instance
    const last = systemPort + processes - 1
    if (httpPort >= systemPort && httpPort <= last)
      faults.push(
        `SYSTEM_PORT: expected one below or above HTTP_PORT (${httpPort}), because each of ${processes} PROCESSES has a port from ${systemPort} to ${last}`,
      )
    if (last > 65_535) faults.push(`SYSTEM_PORT: expected at most ${65_536 - processes} with ${processes} PROCESSES`)
  }
  Object.assign(settings, own)
}
