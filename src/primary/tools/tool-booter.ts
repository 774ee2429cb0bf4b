// The tools of the primary: what their settings lack, their boot, and the next one of a tool whose server was away.
import { basename } from 'node:path'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError, isMisconfigured } from '../../core/errors/catalogue.ts'
import { headOf, messageOf } from '../../core/errors/description.ts'
import { storeDatabaseOf } from '../../runtime/event-store/database.ts'
import type { ToolFolder } from '../../runtime/kernel/discover.ts'
import { RECOVERED } from '../../runtime/kernel/proxy.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { Health } from '../health/health.ts'

/**
 * Warnings of what several processes do not share, although clients meet now one of them and now another.
 * @param folders the implementations in use
 */
export function notShared(
  folders: readonly ToolFolder[],
  { processes, eventBusDriver, systemPort }: Pick<Settings, 'processes' | 'eventBusDriver' | 'systemPort'>,
): string[] {
  const warnings: string[] = []
  const each = `${processes > 1 ? `PROCESSES is ${processes}` : 'HTTP_REUSE_PORT is true'}, and each process`
  if (folders.some(({ path }) => basename(path) === 'memory-state'))
    warnings.push(`${each} has a state of its own, with its own counters and sessions: TOOLS=redis-state shares it`)
  if (eventBusDriver === 'in_process')
    warnings.push(
      `${each} delivers its own events alone: EVENT_BUS_DRIVER=database on PostgreSQL, or keyvalue_streams, shares them`,
    )
  if (systemPort === undefined)
    warnings.push(`${each} shows itself alone under /system: with SYSTEM_PORT each has a port of its own`)
  return warnings
}

/** Refuses several processes on SQLite before anything is served: in the second one no transaction could publish. @param db an instance of the tool. @throws DATABASE_TAKEN */
export function refuseOneFile({ processes }: Pick<Settings, 'processes'>, db: object | undefined): void {
  if (processes === 1 || storeDatabaseOf(db)?.dialect !== 'sqlite') return
  throw new HeddleError(
    'DATABASE_TAKEN',
    `PROCESSES is ${processes}, and SQLite keeps the events of one process: use PostgreSQL (TOOLS=postgres), or PROCESSES=1`,
  )
}

/** What a start says of events with a key or a delay, which Redis does not get; null where all processes share them. @param db an instance of the tool */
export function notOverRedis(
  { eventBusDriver }: Pick<Settings, 'eventBusDriver'>,
  db: object | undefined,
): string | null {
  if (eventBusDriver !== 'keyvalue_streams') return null
  const dialect = storeDatabaseOf(db)?.dialect
  if (dialect === 'postgres') return null
  if (dialect === undefined)
    return 'Events with a key or a delay are refused: db stores them, and no tool db is installed that can'
  return 'Events with a key or a delay stay in the process that publishes them: db stores them, and processes do not share SQLite. With several processes use PostgreSQL (TOOLS=postgres)'
}

/**
 * Warnings of URLs that are set while nothing reads them: a URL chooses no implementation.
 * @param folders the implementations in use
 */
export function unreadUrls(
  folders: readonly ToolFolder[],
  { databaseUrl, redisUrl, eventBusDriver }: Pick<Settings, 'databaseUrl' | 'redisUrl' | 'eventBusDriver'>,
): string[] {
  const isUsed = (implementation: string): boolean => folders.some(({ path }) => basename(path) === implementation)
  const warnings: string[] = []
  if (databaseUrl !== undefined && isUsed('sqlite')) {
    warnings.push(
      'DATABASE_URL is set, and db is SQLite, which does not read it: choose PostgreSQL with TOOLS=postgres, or with "heddle": { "tools": { "db": "postgres" } } in package.json',
    )
  }
  if (redisUrl !== undefined && isUsed('memory-state') && eventBusDriver !== 'keyvalue_streams') {
    warnings.push(
      'REDIS_URL is set, and nothing reads it: choose TOOLS=redis-state for state, or EVENT_BUS_DRIVER=keyvalue_streams for events',
    )
  }
  return warnings
}

/** First pause before a tool is booted again, milliseconds; each further pause is twice as long as the one before. */
const PAUSE_MS = 500
const MAX_PAUSE_MS = 5000

/**
 * Boots the tools of the primary. When a tool fails, the process serves what it can and is not ready. A tool whose server is away is
 * booted again until the server is there.
 */
export class ToolBooter {
  readonly #kernel: ThreadKernel
  readonly #health: Health
  /** Why tools did not boot, by tool. */
  readonly #faults = new Map<string, string>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #isStopped = false

  constructor(kernel: ThreadKernel, health: Health) {
    this.#kernel = kernel
    this.#health = health
  }

  /** @param isDevelopment somebody fixes it while the process runs @throws what no other start would fix, but for development */
  async bootAll(isDevelopment: boolean): Promise<void> {
    await this.#kernel.toolbox.boot((tool, error) => {
      if (!isDevelopment && isMisconfigured(error)) throw error
      this.#failed(tool, error, PAUSE_MS)
    })
  }

  get reasons(): string[] {
    return [...this.#faults].map(([tool, fault]) => `tool ${tool} did not boot: ${fault}`)
  }

  /** What kept a tool from booting is fixed: boots it again. Does nothing for one that has booted. */
  async fixed(tool: string): Promise<void> {
    if (this.#faults.has(tool) && !this.#timers.has(tool)) await this.#bootAgain(tool, PAUSE_MS)
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
  }

  #failed(tool: string, error: unknown, pauseMs: number): void {
    // Its further lines show the place, for the log.
    const fault = headOf(messageOf(error))
    const again = this.#kernel.toolbox.mayBootLater(tool) && !this.#isStopped
    this.#health.setTool(tool, 'DEAD', fault)
    if (this.#faults.get(tool) !== fault) {
      this.#kernel.writeLog(
        'ERROR',
        `Tool ${tool} did not boot${again ? ' and is tried again' : ''}: ${messageOf(error)}`,
        tool,
      )
    }
    this.#faults.set(tool, fault)
    if (again) this.#timers.set(tool, setTimeout(() => void this.#bootAgain(tool, pauseMs), pauseMs).unref())
  }

  async #bootAgain(tool: string, pauseMs: number): Promise<void> {
    try {
      await this.#kernel.toolbox.bootAgain(tool)
    } catch (error) {
      this.#failed(tool, error, Math.min(MAX_PAUSE_MS, pauseMs * 2))
      return
    }
    this.#faults.delete(tool)
    this.#health.setTool(tool, 'OK', RECOVERED)
    this.#kernel.writeLog('INFO', `Tool ${tool} has booted`, tool)
  }
}
