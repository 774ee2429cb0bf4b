// The tool `scheduler`.
import type { Owner } from '../../contracts/common.ts'
import type {
  JobHandler,
  JobOptions,
  ListOptions,
  RunNowOptions,
  Schedule,
  Scheduler,
} from '../../contracts/scheduler.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { nextCronRun } from '../../core/schedule/cron.ts'

const MIN_EVERY_MS = 10
const MAX_NAME_CHARS = 200
const ASKED_BY_MAX_CHARS = 200

/** Checks jobs and registers them with the runtime; the primary runs them when they are due. */
export default class SchedulerTool implements Tool {
  readonly name = 'scheduler'
  #runtime: ToolRuntime
  #names = new WeakMap<Owner, Set<string>>()

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  api(owner: Owner): Scheduler {
    const add = (name: string, schedule: Schedule, handler: JobHandler, options: JobOptions | undefined) => {
      if (typeof handler !== 'function') throw invalid(name, 'the handler must be a function')
      const missed = options?.missed ?? 'skip'
      if (missed !== 'skip' && missed !== 'once') {
        throw invalid(name, `missed is 'skip' or 'once', not ${JSON.stringify(missed)}`)
      }
      this.#claim(owner, name)
      this.#runtime.host.addJob({ owner, name, schedule, missed, handler })
    }
    return {
      cron: (name, expression, handler, options) => {
        const timeZone = options?.timeZone
        checkZone(name, timeZone)
        checkExpression(name, expression, timeZone)
        add(name, { kind: 'cron', expression, ...(timeZone !== undefined && { timeZone }) }, handler, options)
      },
      every: (name, everyMs, handler, options) => {
        if (!Number.isSafeInteger(everyMs) || everyMs < MIN_EVERY_MS) {
          throw invalid(name, `every wants a whole number of milliseconds, at least ${MIN_EVERY_MS}, got ${everyMs}`)
        }
        add(name, { kind: 'every', everyMs }, handler, options)
      },
      at: (name, date, handler, options) => {
        const atMs = date instanceof Date ? date.getTime() : Number.NaN
        if (Number.isNaN(atMs)) throw invalid(name, 'at wants a valid Date')
        add(name, { kind: 'at', atMs }, handler, options)
      },
      runNow: async (name, options = {}) => {
        const { plugin = owner.name, askedBy = owner.name } = options satisfies RunNowOptions
        for (const [what, value] of Object.entries({ name, plugin, askedBy })) {
          if (isText(value, ASKED_BY_MAX_CHARS)) continue
          throw invalid(name, `runNow wants ${what} to be a text of 1 to ${ASKED_BY_MAX_CHARS} characters`)
        }
        return this.#runtime.host.services.runJob(`${plugin}/${name}`, askedBy)
      },
      list: ({ upcoming = false, noted = false }: ListOptions = {}) =>
        this.#runtime.host.services.jobs({ upcoming, noted }),
    }
  }

  #claim(owner: Owner, name: string): void {
    if (!isText(name, MAX_NAME_CHARS)) {
      throw invalid(name, `the name must have 1 to ${MAX_NAME_CHARS} characters`)
    }
    const names = this.#names.get(owner) ?? new Set()
    if (names.has(name)) throw invalid(name, `${owner.name} has a job of this name already`)
    this.#names.set(owner, names.add(name))
  }
}

const isText = (value: unknown, max: number): boolean =>
  typeof value === 'string' && value.trim() !== '' && value.length <= max

function checkZone(name: string, timeZone: unknown): void {
  if (timeZone === undefined) return
  try {
    if (typeof timeZone !== 'string') throw new TypeError('it must be a string')
    new Intl.DateTimeFormat('en', { timeZone })
  } catch {
    throw invalid(
      name,
      `${JSON.stringify(timeZone) ?? typeof timeZone} is no time zone: write one of the IANA data base, such as 'Europe/Vienna'`,
    )
  }
}

function checkExpression(name: string, expression: string, timeZone: string | undefined): void {
  let next: number | null
  try {
    next = nextCronRun(expression, Date.now(), timeZone)
  } catch (error) {
    throw invalid(
      name,
      `the cron expression ${JSON.stringify(expression)} is not valid: ${messageOf(error).replace('CronPattern: ', '')}`,
    )
  }
  if (next === null) throw invalid(name, `the cron expression ${JSON.stringify(expression)} never comes true`)
}

function invalid(name: unknown, fault: string): HeddleError {
  return new HeddleError('SCHEDULER_INVALID', `Job ${JSON.stringify(name) ?? typeof name}: ${fault}`)
}
