import { Plugin, type ToolStatus, type Tools } from '#heddle'

/** Most milliseconds of a check, whatever the interval. A longer check counts as failed. */
const DEADLINE_MAX_MS = 5000

interface Outcome {
  status: ToolStatus
  message: string
}

/** Calls the `healthCheck()` of every tool that has one, every `HEALTH_CHECK_INTERVAL` seconds, and sets the tool's status by the result. */
export default class CheckTools extends Plugin {
  static override thread = 'primary' as const
  #registry
  #logger
  #intervalMs: number
  #checks = new Map<string, () => unknown>()
  /** The last outcome of each tool, so that a tool that stays unhealthy is logged once. */
  #last = new Map<string, Outcome>()
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(tools: Tools) {
    super()
    this.#registry = tools.registry
    this.#logger = tools.logger
    this.#intervalMs = tools.config.get('HEALTH_CHECK_INTERVAL', { default: 30 }) * 1000
    for (const name of Object.keys(tools)) {
      const check = healthCheckOf(tools, name)
      if (check !== undefined) this.#checks.set(name, check)
    }
  }

  override onReady() {
    this.#checkAll()
    this.#timer = setInterval(() => this.#checkAll(), this.#intervalMs).unref()
  }

  override onStop() {
    this.#stopped = true
    clearInterval(this.#timer)
  }

  #checkAll() {
    for (const [tool, check] of this.#checks) void this.#check(tool, check)
  }

  async #check(tool: string, check: () => unknown): Promise<void> {
    const outcome = await outcomeOf(check, Math.min(this.#intervalMs, DEADLINE_MAX_MS))
    if (this.#stopped) return
    const { status, message } = outcome
    this.#registry.updateToolStatus(tool, status, { message })
    const before = this.#last.get(tool)
    this.#last.set(tool, outcome)
    if (before?.status === status && before.message === message) return
    if (status === 'DEAD') this.#logger.error(`The health check of ${tool} failed: ${message}`)
    else if (status === 'FAIL') this.#logger.warning(`${tool} is not healthy: ${message}`)
    else if (before !== undefined) this.#logger.info(`${tool} is healthy again`)
  }
}

/** Never rejects. */
async function outcomeOf(check: () => unknown, deadlineMs: number): Promise<Outcome> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${deadlineMs} ms`)), deadlineMs)
  })
  try {
    const isHealthy = await Promise.race([check(), deadline])
    if (isHealthy === true) return { status: 'OK', message: 'periodic check' }
    return { status: 'FAIL', message: 'the health check returned false' }
  } catch (thrown) {
    return { status: 'DEAD', message: thrown instanceof Error ? thrown.message : String(thrown) }
  } finally {
    clearTimeout(timer)
  }
}

function healthCheckOf(tools: Tools, name: string): (() => unknown) | undefined {
  try {
    const { healthCheck } = (tools as unknown as Record<string, { healthCheck?: () => unknown }>)[name]!
    return healthCheck
  } catch {
    // The tool did not boot, which its status shows already.
    return undefined
  }
}
