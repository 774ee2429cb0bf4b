import type { HttpContext, Tools } from '#heddle'

export type OperatorAct =
  | `event.${'publish' | 'cancel'}`
  | `dead_letter.${'replay' | 'replay_many' | 'edit' | 'delete'}`
  | `queue.${'pause' | 'resume'}`
  | 'delivery.run'
  | 'job.run'

/** Tells who did what from outside: in the log, and as the event `runtime.operator.acted`. */
export async function tellOperatorAct(
  { event_bus: bus, logger: log }: Pick<Tools, 'event_bus' | 'logger'>,
  { action, target }: { action: OperatorAct; target: string },
  context: HttpContext,
): Promise<void> {
  const acted = { action, target, by: context.operator ?? 'anyone', address: context.ip, at: new Date().toISOString() }
  log.info(`An operator acted: ${action}`, { ...acted, request_id: context.requestId })
  try {
    await bus.publish('runtime.operator.acted', acted)
  } catch (error) {
    // It is done, and in the log: a full queue does not make it a failure.
    log.warning(`runtime.operator.acted was not published: ${(error as Error).message}`)
  }
}
