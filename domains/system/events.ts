import { z } from 'zod'
import type { EventContracts } from '#heddle'

export default {
  'event.delivery.failed': z.object({
    event: z.string(),
    event_id: z.string(),
    subscriber: z.string(),
    error: z.string(),
    attempts: z.number().int().positive(),
  }),
} satisfies EventContracts
