import type { ErrorCode, EvaluationContext, JsonValue, Logger, Provider, ResolutionDetails, TrackingEventDetails } from "@openfeature/server-sdk";
import { type Choice, type Client, type DecideRequest, Problem } from "./index.js";

/**
 * A flag is a placement. An array flag is the page: its items in display order, with their payloads. Any other flag is the payload
 * of the first item shown, or its id if there is none; the variant is its id. The flag's metadata has the decision_id, and tracking
 * the event "outcome" reports the outcome:
 *
 *     const page = await flags.getObjectDetails("shop", []);
 *     flags.track("outcome", {}, { placement: "shop", decision: page.flagMetadata.decision_id, choice: "sku1" });
 *
 * The choice is an item's id, or null for no sale; the event's value replaces the item's revenue. For several items set choices, a list
 * of Choice. Each evaluation is a decision and counts as a page shown: use the methods get…Details, which return the decision's id.
 *
 * If the service does not answer within a second, the flag has its default.
 */
export class VitrineProvider implements Provider {
  readonly metadata = { name: "vitrine" };
  readonly runsOn = "server" as const;

  /**
   * request makes the question from a context, such as features of the shopper. By default the targetingKey is the shopper_id, and the rest is left out.
   * logger gets the outcomes that could not be reported: the SDK hides a provider's errors in track.
   */
  constructor(readonly client: Client, readonly request: (context: EvaluationContext, flag: string) => DecideRequest = shopperOf, readonly logger: Pick<Logger, "warn"> = console) {}

  resolveBooleanEvaluation(flag: string, value: boolean, context: EvaluationContext): Promise<ResolutionDetails<boolean>> {
    return this.#resolve(flag, value, context);
  }
  resolveStringEvaluation(flag: string, value: string, context: EvaluationContext): Promise<ResolutionDetails<string>> {
    return this.#resolve(flag, value, context);
  }
  resolveNumberEvaluation(flag: string, value: number, context: EvaluationContext): Promise<ResolutionDetails<number>> {
    return this.#resolve(flag, value, context);
  }
  resolveObjectEvaluation<T extends JsonValue>(flag: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>> {
    return this.#resolve(flag, value, context);
  }

  track(name: string, _: EvaluationContext, details: TrackingEventDetails = {}): void {
    if (name !== "outcome") return;
    const { placement, decision } = details;
    void (async () => this.client.outcome(String(placement), String(decision ?? ""), takenIn(details)))() // without a decision, the default was shown
      .catch((failure: unknown) => this.logger.warn(`vitrine: the outcome of the decision ${String(decision)} of ${String(placement)} is not reported:`, failure));
  }

  async #resolve<T extends JsonValue>(flag: string, value: T, context: EvaluationContext): Promise<ResolutionDetails<T>> {
    const failed = (code: string, errorMessage: string) => ({ value, reason: "ERROR", errorCode: code as ErrorCode, errorMessage });
    try {
      const request = this.request(context, flag);
      const page = await this.client.decide(flag, { payload: true, ...request }, { within: 1000 });
      const [first] = page.assortment;
      const found: unknown = Array.isArray(value) ? page.assortment : first?.payload ?? first?.id;
      if (found === undefined) return { value, reason: "DEFAULT", flagMetadata: { decision_id: page.decision_id } };
      if (typeof found !== typeof value) return failed("TYPE_MISMATCH", `${flag} shows ${first?.id}, whose payload is not of the type ${typeof value}`);
      const reason = page.propensity !== 1 ? "SPLIT" : Object.keys(request).length > 0 ? "TARGETING_MATCH" : "STATIC";
      return { value: found as T, reason, ...(first && { variant: first.id }), flagMetadata: { decision_id: page.decision_id } };
    } catch (failure) {
      if (failure instanceof Problem && failure.status === 404) return failed("FLAG_NOT_FOUND", failure.message);
      throw failure; // the SDK returns the default
    }
  }
}

function takenIn({ choice, choices, value }: TrackingEventDetails): string | null | readonly Choice[] {
  const taken = choices === undefined ? choice : choice === undefined ? choices : undefined;
  if (typeof taken === "string") return value === undefined ? taken : [{ item: taken, value }];
  if (taken !== null && !Array.isArray(taken)) throw new TypeError("choice: must be an item's id, or null for no sale; or set choices, a list of what was taken");
  if (taken ? value !== undefined : value) throw new TypeError(`value ${value}: is for a choice of one item; in choices, give each item its value`);
  return taken as unknown as readonly Choice[] | null;
}

function shopperOf({ targetingKey }: EvaluationContext): DecideRequest {
  return targetingKey ? { shopper_id: targetingKey } : {};
}
