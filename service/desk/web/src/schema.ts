import { get } from "./api";

// Schema is the part of JSON Schema that the OpenAPI document has.
export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: string[];
  minimum?: number;
  maximum?: number;
  minItems?: number;
  default?: unknown;
  description?: string;
  readOnly?: boolean;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  format?: string;
}

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required?: boolean;
  description?: string;
  schema?: Schema;
}

export interface Content {
  schema?: Schema;
  example?: unknown;
}

export interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { description: string; content?: Record<string, Content> }>;
}

export interface Document {
  info: { title: string; version: string; description: string };
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

let loaded: Promise<Document> | undefined;

// document is the service's own description, loaded once.
export function apiDocument(): Promise<Document> {
  loaded ??= get<Document>("openapi.json").catch((failure) => {
    loaded = undefined;
    throw failure;
  });
  return loaded;
}

// resolve returns a schema, or the one that it refers to.
export function resolve(doc: Document, schema: Schema | undefined): Schema {
  if (!schema?.$ref) return schema ?? {};
  return doc.components.schemas[schema.$ref.split("/").pop()!] ?? {};
}

// typeOf returns the type of a schema, without null.
export function typeOf(schema: Schema): string {
  const types = [schema.type ?? []].flat().filter((t) => t !== "null");
  return types[0] ?? "any";
}
