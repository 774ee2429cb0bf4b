import type { Fault } from './faults.ts'
import type { Place } from './places.ts'

/** The plugin that fails at a place. @param asked a file that is there once for each fault that is asked for @param mark an argument of its children */
export function badPlugin({ text }: Place, fault: Fault, asked: string, mark: string): string {
  const at = (place: keyof Place['text']): string => (text[place] ?? '').replaceAll('FAULT', 'fault()')
  return `import { spawn } from 'node:child_process'
import { openSync, unlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import { Plugin, type Tools } from '#heddle'

const MARK = ${JSON.stringify(mark)}
const kept: unknown[] = []
let log: (message: string) => void = () => {}
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
/** Whether a fault is asked for: one thread takes it. */
function take(): boolean {
  try {
    unlinkSync(${JSON.stringify(asked)})
    return true
  } catch {
    return false
  }
}
function fault(): unknown {
  ${fault.text}
  return undefined
}
${at('module')}

export default class Plant extends Plugin {
  #tools: Tools
  ${at('field')}

  constructor(tools: Tools) {
    super()
    const { http, event_bus, db, scheduler, logger } = tools
    this.#tools = { http, event_bus, db, scheduler, logger } as Tools
    log = (message) => logger.info(message)
    ${at('built')}
  }

  override async onBoot() {
    const { http, event_bus, db, scheduler } = this.#tools
    http.addEndpoint('/bad/there', 'GET', () => ({ there: true }))
    void [event_bus, db, scheduler, pause, take, connect, openSync, spawn, Worker, MARK, kept, fault]
    ${at('onBoot')}
  }

  override async onReady() {
    ${at('onReady')}
  }

  override async onStop() {
    ${at('onStop')}
  }
}
`
}

/** The plugin of everybody else. */
export const GOOD_PLUGIN = `import { Plugin, type Tools } from '#heddle'

export default class BeGood extends Plugin {
  constructor({ http, event_bus }: Tools) {
    super()
    let heard = 0
    event_bus.subscribe('good.happened', async () => void heard++)
    http.addEndpoint('/good', 'GET', () => ({ pid: process.pid, heard }))
  }
}
`

/** One that always has native calls in flight. */
export const HASH_PLUGIN = `import bcrypt from 'bcrypt'
import { Plugin, type Tools } from '#heddle'

export default class HashWord extends Plugin {
  constructor({ http }: Tools) {
    super()
    http.addEndpoint('/hash', 'GET', async () => ({ hash: await bcrypt.hash('a word', 10) }))
  }
}
`
