import { z } from 'zod'
import type { EventContracts, PayloadsOf } from '#heddle'

const contracts = {
  'event.delivery.failed': z.object({
    event: z.string(),
    event_id: z.string(),
    subscriber: z.string(),
    error: z.string(),
    attempts: z.number().int().positive(),
  }),
} satisfies EventContracts

export default contracts

declare module '#heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
