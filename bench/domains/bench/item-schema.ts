import { z } from 'zod'

/** The body of `POST /bench/items`: the same schema on both sides of the comparison. */
export const itemSchema = z.object({
  name: z.string().min(1).max(100),
  quantity: z.number().int().min(1).max(1000),
  note: z.string().max(500).optional(),
})

export type Item = z.infer<typeof itemSchema>
