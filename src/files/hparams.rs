//! What the plugin `hparams` of TensorBoard reads: which settings an experiment has, their values in one run, and that the
//! run has ended. Kept as the content of a plugin in a summary without a value.
//!
//! Source: <https://github.com/tensorflow/tensorboard>, `plugins/hparams/api.proto` and `plugin_data.proto`.

use super::events::Message;

/// A value of a setting.
#[derive(Clone, Debug)]
pub enum Setting {
    Number(f64),
    Text(String),
}

/// A setting, and the values that it may have if they are listed.
#[derive(Clone, Debug)]
pub struct Known {
    pub name: String,
    pub value: Setting,
    pub domain: Option<Vec<Setting>>,
}

/// One of the three records.
#[derive(Clone, Debug)]
pub enum Part {
    Experiment { settings: Vec<Known>, metrics: Vec<String> },
    Start { settings: Vec<Known> },
    End,
}

impl Setting {
    /// A `google.protobuf.Value`.
    fn message(&self) -> Message {
        let mut out = Message::default();
        match self {
            // Also 0: it is one of several kinds of value.
            Setting::Number(value) => out.present_double(2, *value),
            Setting::Text(text) => out.bytes(3, text.as_bytes()),
        }
        out
    }

    /// A `DataType`.
    fn kind(&self) -> i64 {
        match self {
            Setting::Number(_) => 3,
            Setting::Text(_) => 1,
        }
    }
}

impl Part {
    /// A `HParamsPluginData` of version 0.
    pub(super) fn message(&self) -> Message {
        let mut out = Message::default();
        match self {
            Part::Experiment { settings, metrics } => out.message(2, &experiment(settings, metrics)),
            Part::Start { settings } => {
                let mut start = Message::default();
                for known in settings {
                    let mut entry = Message::default();
                    entry.bytes(1, known.name.as_bytes());
                    entry.message(2, &known.value.message());
                    start.message(1, &entry);
                }
                out.message(3, &start);
            }
            Part::End => {
                const SUCCESS: i64 = 1;
                let mut end = Message::default();
                end.integer(1, SUCCESS);
                out.message(4, &end);
            }
        }
        out
    }
}

fn experiment(settings: &[Known], metrics: &[String]) -> Message {
    let mut out = Message::default();
    for known in settings {
        let mut info = Message::default();
        info.bytes(1, known.name.as_bytes());
        info.integer(4, known.value.kind());
        if let Some(domain) = &known.domain {
            let mut list = Message::default();
            domain.iter().for_each(|value| list.message(1, &value.message()));
            info.message(5, &list);
        }
        out.message(4, &info);
    }
    for metric in metrics {
        let (mut name, mut info) = (Message::default(), Message::default());
        name.bytes(2, metric.as_bytes());
        info.message(1, &name);
        out.message(5, &info);
    }
    out
}
