import type { DeathPart, DeliveryPart, RequestDetail, RequestPart, WorkPart } from '#heddle'

type PartOf<Type extends RequestPart['type']> = Extract<RequestPart, { type: Type }>

const partsOf = <Type extends RequestPart['type']>({ parts }: RequestDetail, wanted: Type): PartOf<Type>[] =>
  parts.filter((part): part is PartOf<Type> => part.type === wanted)

export const worksOf = (request: RequestDetail): WorkPart[] => partsOf(request, 'work')
export const deliveriesOf = (request: RequestDetail): DeliveryPart[] => partsOf(request, 'delivery')
export const deathsOf = (request: RequestDetail): DeathPart[] => partsOf(request, 'death')
