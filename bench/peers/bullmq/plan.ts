// What the modules of BullMQ get and answer: they are JavaScript, because its types are installed with the first run.

export interface RedisAccess {
  host: string
  port: number
  password: string
}

/** CPU time of a job, microseconds. */
export interface JobCost {
  /** Of the process that adds and handles the jobs. */
  ownUs: number
  serverUs: number
}

export type MeasureCosts = (plan: { access: RedisAccess; jobs: number }) => Promise<{ plain: JobCost; used: JobCost }>

export type MeasureTurns<Access = RedisAccess> = (plan: {
  access: Access
  behind: number
  probes: number
  atATime: number
  turnMs: number
}) => Promise<Turns>

/** How long jobs of another tenant take until their handler begins, milliseconds. */
export interface Turns {
  alone: number[]
  behind: number[]
}

/** From the request until the signal is aborted in the other process, milliseconds. */
export type MeasureCancels = (plan: { access: RedisAccess; probes: number }) => Promise<number[]>

export type MeasureFollowers = (plan: {
  access: RedisAccess
  followed: number
  measureMs: number
  probes: number
}) => Promise<Followed>

export interface Followed {
  /** CPU of the process that has the listeners, per cent of a core, while nothing changes. */
  idlePercent: number
  /** From a report until the listener has it, milliseconds. */
  reports: number[]
  /** The same of the last listener, when all report at the same time. */
  allMs: number
}
